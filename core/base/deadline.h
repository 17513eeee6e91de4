// A point in time by which a wait must end. Every wait in verbscope takes one.
//
// Plain value on CLOCK_MONOTONIC; copy it freely, any thread. It is for waiting, not for measuring:
// measured times come from core/clock.
#ifndef VERBSCOPE_CORE_BASE_DEADLINE_H_
#define VERBSCOPE_CORE_BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>

namespace verbscope {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // A hundred years are for ever, and still a time that can be added to now.
  static Deadline After(std::chrono::nanoseconds time) {
    constexpr std::chrono::nanoseconds kForever = std::chrono::hours(24 * 365 * 100);
    return Deadline(Clock::now() + std::min(time, kForever));
  }
  static Deadline At(Clock::time_point when) { return Deadline(when); }
  // The earlier of two: an inner wait never outlives the outer one.
  static Deadline Earlier(Deadline a, Deadline b) { return a.when_ < b.when_ ? a : b; }

  bool Passed() const { return Clock::now() >= when_; }
  // Time left, never negative.
  std::chrono::nanoseconds Left() const {
    return std::max(std::chrono::nanoseconds(0),
                    std::chrono::duration_cast<std::chrono::nanoseconds>(when_ - Clock::now()));
  }
  // Time left for poll(2) in milliseconds, rounded up so that a wait never ends early and spins.
  int PollTimeoutMs() const {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(Left()).count();
    return static_cast<int>(std::min<std::chrono::milliseconds::rep>(ms, 1 << 30));
  }
  Clock::time_point when() const { return when_; }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_BASE_DEADLINE_H_
