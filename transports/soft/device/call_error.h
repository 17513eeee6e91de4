// Errors of control calls, with the cause and the next step that an operator needs.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_CALL_ERROR_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_CALL_ERROR_H_

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace verbscope::soft {

// A call refused before it did anything. `errno_value` is also left in errno, as verbs do.
inline Error Refused(std::string_view call, std::string_view parameter, int errno_value,
                     std::string cause, std::string next_step = "") {
  Error error = CallError(ErrorClass::kSetup, call, parameter, errno_value);
  error.cause = std::move(cause);
  error.next_step = std::move(next_step);
  errno = errno_value;
  return error;
}

// The object is not alive, or its handle was changed.
inline Error Unknown(std::string_view call) {
  Error error = CallError(ErrorClass::kInternal, call, "", ENOENT);
  error.cause =
      "the object does not exist on this device (destroyed already, or its handle changed)";
  errno = ENOENT;
  return error;
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_CALL_ERROR_H_
