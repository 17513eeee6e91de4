// TickScale: turns a difference of two reads of a clock into nanoseconds with one multiplication
// and one shift, rounded to the nearest ns. Plain value, any thread.
//
//   const TickScale half = clock.scale(0.5);  // half round trips
//   histogram.Record(half.Nanoseconds(Counter::Now() - start));
#ifndef VERBSCOPE_CORE_CLOCK_TICK_SCALE_H_
#define VERBSCOPE_CORE_CLOCK_TICK_SCALE_H_

#include <cassert>
#include <cmath>
#include <cstdint>

namespace verbscope {

class TickScale {
 public:
  static constexpr double kMinHz = 1e5;
  static constexpr double kMaxHz = 1e11;

  // One tick is one ns.
  TickScale() : TickScale(1e9, 1) {}

  // A clock of `hz` ticks a second, kMinHz to kMaxHz; results are multiplied by `factor`, above 0
  // up to 1. The multiplier is off by less than 2^-40 of itself for clocks up to 10 GHz.
  TickScale(double hz, double factor)
      : multiplier_(static_cast<int64_t>(std::llround(std::ldexp(1e9 / hz * factor, kShift)))),
        ticks_per_ns_(hz / 1e9 / factor) {
    assert(hz >= kMinHz && hz <= kMaxHz && factor > 0 && factor <= 1);
  }

  // `ticks` is later read minus earlier read. If the clock stepped back in between, the difference
  // has wrapped and the answer is negative, which Histogram counts apart. The product takes 128
  // bits: 64 would overflow within a minute.
  int64_t Nanoseconds(uint64_t ticks) const {
    const auto product = static_cast<__int128>(static_cast<int64_t>(ticks)) * multiplier_;
    return static_cast<int64_t>((product + (int64_t{1} << (kShift - 1))) >> kShift);
  }

  // Ticks in `ns`, rounded, to compute a point in time to wait for. ns up to 2^53.
  uint64_t Ticks(uint64_t ns) const {
    return static_cast<uint64_t>(std::llround(static_cast<double>(ns) * ticks_per_ns_));
  }

 private:
  // Keeps the multiplier below 2^62 at kMinHz and above 2^41 at kMaxHz.
  static constexpr int kShift = 48;

  int64_t multiplier_;
  double ticks_per_ns_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CLOCK_TICK_SCALE_H_
