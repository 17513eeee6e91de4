// An Error of the setup class, in one line.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_SETUP_ERROR_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_SETUP_ERROR_H_

#include <string>
#include <utility>

#include "core/base/error.h"

namespace verbscope::soft {

inline Error SetupError(std::string message, std::string cause, std::string next_step) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = std::move(message);
  error.cause = std::move(cause);
  error.next_step = std::move(next_step);
  return error;
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_SETUP_ERROR_H_
