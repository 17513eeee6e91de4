#include "core/clock/tick_scale.h"

#include <gtest/gtest.h>

#include <cmath>

namespace verbscope {
namespace {

constexpr double kRates[] = {1e5, 1e6, 25e6, 1e9, 1'999'987'654.3, 2.4e9, 3.7e9, 5e9, 1e10};

TEST(TickScale, IsExactToAMillionthUpToHoursAndToHalfANanosecondWhenShort) {
  for (const double hz : kRates) {
    for (const double factor : {1.0, 0.5}) {
      const TickScale scale(hz, factor);
      for (const double seconds : {1e-6, 1e-3, 1.0, 100.0, 3600.0, 1e6}) {
        const auto ticks = static_cast<uint64_t>(seconds * hz);
        const long double exact = static_cast<long double>(ticks) * 1e9L / hz * factor;
        EXPECT_NEAR(static_cast<double>(scale.Nanoseconds(ticks)), static_cast<double>(exact),
                    0.51 + static_cast<double>(exact) * 1e-11)
            << hz << " " << seconds;
      }
    }
  }
}

TEST(TickScale, DefaultIsOneNanosecondPerTick) {
  const TickScale scale;
  for (const uint64_t ticks : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 62}) {
    EXPECT_EQ(scale.Nanoseconds(ticks), static_cast<int64_t>(ticks));
  }
}

TEST(TickScale, RoundsToTheNearestSoThatTheMeanIsNotBiased) {
  const TickScale scale(4e9, 1);  // a quarter ns per tick
  EXPECT_EQ(scale.Nanoseconds(5), 1);
  EXPECT_EQ(scale.Nanoseconds(6), 2);  // 1.5
  EXPECT_EQ(scale.Nanoseconds(7), 2);
  const TickScale half(1e9, 0.5);
  EXPECT_EQ(half.Nanoseconds(4001), 2001);  // 2000.5
  EXPECT_EQ(half.Nanoseconds(4000), 2000);
}

TEST(TickScale, ClockThatStepsBackGivesANegativeTime) {
  const TickScale scale(2e9, 1);
  const uint64_t earlier = 1'000'000;
  EXPECT_EQ(scale.Nanoseconds(earlier - 2'000 - earlier), -1000);
}

TEST(TickScale, TicksInvertNanoseconds) {
  for (const double hz : kRates) {
    for (const double factor : {1.0, 0.5}) {
      const TickScale scale(hz, factor);
      for (const uint64_t ns : {uint64_t{1'000'000}, uint64_t{100'000'000'000}}) {
        EXPECT_NEAR(static_cast<double>(scale.Nanoseconds(scale.Ticks(ns))),
                    static_cast<double>(ns), 0.51 + 0.5e9 / hz)
            << hz;
      }
    }
  }
}

}  // namespace
}  // namespace verbscope
