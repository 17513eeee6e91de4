#include "core/clock/clock.h"

#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

namespace verbscope {
namespace {

TEST(PosixClock, NeverGoesBack) {
  uint64_t previous = PosixClock::Now();
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t now = PosixClock::Now();
    ASSERT_GE(now, previous);
    previous = now;
  }
}

TEST(CpuCounter, AdvancesWithTheReferenceClock) {
  const uint64_t counter = CpuCounter::Now();
  const uint64_t raw_ns = PosixClock::Now();
  while (PosixClock::Now() - raw_ns < 100'000) {
  }
  EXPECT_NE(CpuCounter::Now(), counter);
}

TEST(Clock, CalibratesToAConsistentDescription) {
  const Clock clock = Clock::Calibrate();
  const ClockInfo& info = clock.info();
  EXPECT_EQ(clock.uses_cpu_counter(), info.source != ClockSource::kClockGettime);
  EXPECT_GE(info.hz, TickScale::kMinHz);
  EXPECT_LE(info.hz, TickScale::kMaxHz);
  EXPECT_GT(info.resolution_ns, 0);
  EXPECT_GT(info.overhead_ns, 0);
  EXPECT_FALSE(info.drift_ppm);
  // Anything but a promised counter is explained.
  EXPECT_EQ(info.notices.empty(), clock.uses_cpu_counter() && info.invariant);
}

TEST(Clock, ScaleTurnsItsOwnTicksIntoReferenceTime) {
  // Brackets, not timing: the reference is read outside the counter, so its span must be longer.
  const Clock clock = Clock::Calibrate();
  const TickScale scale = clock.scale();
  const auto spans = clock.Dispatch([&](auto counter) {
    using Counter = decltype(counter);
    const uint64_t outer = PosixClock::Now();
    const uint64_t inner = Counter::Now();
    while (PosixClock::Now() - outer < 5'000'000) {
    }
    const int64_t inner_ns = scale.Nanoseconds(Counter::Now() - inner);
    return std::pair(inner_ns, static_cast<int64_t>(PosixClock::Now() - outer));
  });
  EXPECT_LE(static_cast<double>(spans.first), static_cast<double>(spans.second) * 1.001 + 100);
  EXPECT_GT(spans.first, 0);
}

TEST(Clock, DispatchPassesTheChosenClock) {
  const Clock clock = Clock::Calibrate();
  EXPECT_EQ(clock.uses_cpu_counter(), clock.Dispatch([](auto counter) {
    return std::is_same_v<decltype(counter), CpuCounter>;
  }));
}

TEST(Clock, FinishStatesTheDriftOfACounterOnly) {
  Clock clock = Clock::Calibrate();
  const size_t notices = clock.info().notices.size();
  const ClockInfo& info = clock.Finish();
  if (clock.uses_cpu_counter()) {
    ASSERT_TRUE(info.drift_ppm);
    EXPECT_TRUE(std::isfinite(*info.drift_ppm));
    EXPECT_EQ(info.notices.size() > notices, std::abs(*info.drift_ppm) > kAgreePpm);
  } else {
    EXPECT_FALSE(info.drift_ppm);
  }
}

TEST(CheckDrift, RefusesMoreThanATenthOfAPercent) {
  ClockInfo info;
  EXPECT_TRUE(CheckDrift(info));
  info.source = ClockSource::kTsc;
  for (const double ppm : {0.0, 999.0, -999.0}) {
    info.drift_ppm = ppm;
    EXPECT_TRUE(CheckDrift(info)) << ppm;
  }
  for (const double ppm : {1001.0, -1001.0, 1e6}) {
    info.drift_ppm = ppm;
    const Status status = CheckDrift(info);
    ASSERT_FALSE(status) << ppm;
    EXPECT_EQ(status.error().error_class, ErrorClass::kInconclusive);
    EXPECT_NE(status.error().message.find("tsc"), std::string::npos);
  }
}

TEST(CheckDrift, RefusesACounterWhoseDriftCouldNotBeMeasured) {
  ClockInfo info;
  info.source = ClockSource::kTsc;
  const Status status = CheckDrift(info);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("went back"), std::string::npos);
}

TEST(ClockSource, HasTheNamesOfTheDocument) {
  EXPECT_EQ(Name(ClockSource::kTsc), "tsc");
  EXPECT_EQ(Name(ClockSource::kCntvct), "cntvct");
  EXPECT_EQ(Name(ClockSource::kClockGettime), "clock_gettime");
}

}  // namespace
}  // namespace verbscope
