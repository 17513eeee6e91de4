// What is wrong with the reports or options given. Pure function, any thread.
#ifndef VERBSCOPE_CORE_COMPARE_USAGE_ERROR_H_
#define VERBSCOPE_CORE_COMPARE_USAGE_ERROR_H_

#include <string>
#include <utility>

#include "core/base/error.h"

namespace verbscope {

inline Error UsageError(std::string message, std::string cause = {}, std::string next_step = {}) {
  Error error = SetupError(std::move(message), std::move(cause), std::move(next_step));
  error.error_class = ErrorClass::kUsage;
  return error;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_USAGE_ERROR_H_
