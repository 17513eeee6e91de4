// The first failure of a run, kept: what comes after it is not done. Lets a check be a straight
// function without a branch behind every call. One thread.
#ifndef VERBSCOPE_CORE_CHECKS_LATCH_H_
#define VERBSCOPE_CORE_CHECKS_LATCH_H_

#include <utility>

#include "core/base/error.h"

namespace verbscope {

class Latch {
 public:
  bool ok() const { return status_.has_value(); }
  void Keep(Status status) {
    if (ok() && !status) status_ = std::move(status);
  }
  // The value, or an empty one after keeping the failure.
  template <class T>
  T Take(Expected<T> value) {
    if (value) return std::move(*value);
    Keep(Fail(std::move(value.error())));
    return {};
  }
  Status TakeStatus() { return std::exchange(status_, {}); }

 private:
  Status status_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_LATCH_H_
