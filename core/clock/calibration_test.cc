#include "core/clock/calibration.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "core/clock/clock.h"

namespace verbscope {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kHalf = 6 * kMs;

// A counter and a reference that move only when told: each read costs `read_ns` of true time.
class FakeClocks {
 public:
  // `ticks_at` maps true ns to the counter.
  explicit FakeClocks(std::function<double(uint64_t)> ticks_at) : ticks_at_(std::move(ticks_at)) {}

  void Wait(uint64_t ns) { now_ += ns; }
  uint64_t Counter() { return static_cast<uint64_t>(ticks_at_(now_ += read_ns_)); }
  uint64_t Raw() { return now_ += read_ns_; }
  Reading Read(int tries = 8) {
    return TightestReading([this] { return Counter(); }, [this] { return Raw(); }, tries);
  }
  void set_read_ns(uint64_t ns) { read_ns_ = ns; }

 private:
  std::function<double(uint64_t)> ticks_at_;
  uint64_t now_ = 5'000'000'000;
  uint64_t read_ns_ = 20;
};

std::function<double(uint64_t)> Constant(double hz) {
  return [hz](uint64_t ns) { return static_cast<double>(ns) * hz / 1e9; };
}

// The start of a run on fake clocks, two halves.
StartReadings Start(FakeClocks& clocks, bool invariant) {
  StartReadings readings;
  readings.counter = ClockSource::kTsc;
  readings.invariant = invariant;
  readings.begin = clocks.Read();
  clocks.Wait(kHalf);
  readings.middle = clocks.Read();
  clocks.Wait(kHalf);
  readings.end = clocks.Read();
  return readings;
}

// Counter with rate `before` until true time `at`, then `after`.
std::function<double(uint64_t)> Step(uint64_t at, double before, double after) {
  return [=](uint64_t ns) {
    const double first = static_cast<double>(std::min(ns, at)) * before / 1e9;
    return first + static_cast<double>(ns - std::min(ns, at)) * after / 1e9;
  };
}

TEST(TightestReading, KeepsTheBracketThatNothingInterrupted) {
  std::vector<uint64_t> counter = {100, 900, 1000, 1010, 2000, 2500};
  std::vector<uint64_t> raw = {1, 2, 3};
  size_t next_counter = 0;
  size_t next_raw = 0;
  const Reading reading =
      TightestReading([&] { return counter[next_counter++]; }, [&] { return raw[next_raw++]; }, 3);
  EXPECT_EQ(reading.counter, 1005u);
  EXPECT_EQ(reading.raw_ns, 2u);
  EXPECT_EQ(reading.width, 10u);
  EXPECT_FALSE(reading.went_back);
}

TEST(TightestReading, TellsOfAStepBack) {
  std::vector<uint64_t> counter = {100, 90, 1000, 1010};
  size_t next = 0;
  const Reading reading =
      TightestReading([&] { return counter[next++]; }, [] { return uint64_t{7}; }, 2);
  EXPECT_TRUE(reading.went_back);
  EXPECT_EQ(reading.counter, 1005u);
}

TEST(RateBetween, IsTicksPerReferenceSecondWithItsUncertainty) {
  const Reading a{.counter = 1000, .raw_ns = 0, .width = 100, .went_back = false};
  const Reading b{.counter = 2'001'000, .raw_ns = 1'000'000, .width = 300, .went_back = false};
  const std::optional<Rate> rate = RateBetween(a, b);
  ASSERT_TRUE(rate);
  EXPECT_DOUBLE_EQ(rate->hz, 2e9);
  EXPECT_DOUBLE_EQ(rate->uncertainty_ppm, 100);
}

TEST(RateBetween, IsUnknownIfAClockDoesNotAdvance) {
  const Reading a{.counter = 1000, .raw_ns = 1000, .width = 1, .went_back = false};
  EXPECT_FALSE(RateBetween(a, a));
  Reading b = {.counter = 2000, .raw_ns = 1000, .width = 1, .went_back = false};
  EXPECT_FALSE(RateBetween(a, b));
  b = {.counter = 500, .raw_ns = 2000, .width = 1, .went_back = false};
  EXPECT_FALSE(RateBetween(a, b));
  b = {.counter = 2000, .raw_ns = 2000, .width = 1, .went_back = true};
  EXPECT_FALSE(RateBetween(a, b));
}

TEST(ChooseClock, TakesAnInvariantCounterAtItsMeasuredRate) {
  // Whatever the counter's rate is called elsewhere: only the measured one counts.
  for (const double hz : {1e6, 25e6, 1e9, 2.4e9, 4.999e9}) {
    FakeClocks clocks(Constant(hz));
    const ClockChoice choice = ChooseClock(Start(clocks, /*invariant=*/true));
    EXPECT_EQ(choice.source, ClockSource::kTsc);
    EXPECT_TRUE(choice.invariant);
    EXPECT_NEAR(choice.hz / hz, 1, 100e-6) << hz;  // 1 MHz: a tick in 12 ms is 83 ppm
    EXPECT_EQ(choice.notice, "");
  }
}

TEST(ChooseClock, TakesACounterWithoutPromiseIfBothHalvesAgree) {
  FakeClocks clocks(Constant(2.4e9));
  const ClockChoice choice = ChooseClock(Start(clocks, /*invariant=*/false));
  EXPECT_EQ(choice.source, ClockSource::kTsc);
  EXPECT_FALSE(choice.invariant);
  EXPECT_NEAR(choice.hz / 2.4e9, 1, 1e-6);
  EXPECT_NE(choice.notice.find("does not promise"), std::string::npos) << choice.notice;
}

TEST(ChooseClock, RefusesACounterWithoutPromiseThatChangesItsRate) {
  const uint64_t middle = 5'000'000'000 + kHalf;
  FakeClocks little(Step(middle, 2.4e9, 2.4e9 * 1.0001));
  EXPECT_EQ(ChooseClock(Start(little, false)).source, ClockSource::kTsc);
  FakeClocks more(Step(middle, 2.4e9, 2.4e9 * 1.0003));
  const ClockChoice choice = ChooseClock(Start(more, false));
  EXPECT_EQ(choice.source, ClockSource::kClockGettime);
  EXPECT_TRUE(choice.invariant);
  EXPECT_EQ(choice.hz, 1e9);
  EXPECT_NE(choice.notice.find("300 ppm"), std::string::npos) << choice.notice;
}

TEST(ChooseClock, RefusesACounterWithoutPromiseThatCannotBeReadTightly) {
  FakeClocks clocks(Constant(2.4e9));
  clocks.set_read_ns(1000);  // 2 µs brackets on 6 ms halves: ± 333 ppm each
  EXPECT_EQ(ChooseClock(Start(clocks, false)).source, ClockSource::kClockGettime);
  FakeClocks promised(Constant(2.4e9));
  promised.set_read_ns(1000);
  EXPECT_EQ(ChooseClock(Start(promised, true)).source, ClockSource::kTsc);
}

TEST(ChooseClock, RefusesACounterThatBreaksItsPromise) {
  const uint64_t middle = 5'000'000'000 + kHalf;
  FakeClocks clocks(Step(middle, 2.4e9, 1.2e9));
  const ClockChoice choice = ChooseClock(Start(clocks, true));
  EXPECT_EQ(choice.source, ClockSource::kClockGettime);
  EXPECT_NE(choice.notice.find("although"), std::string::npos) << choice.notice;
}

TEST(ChooseClock, RefusesACounterThatStepsBackOrStands) {
  const uint64_t at = 5'000'000'000 + kHalf + 2 * kMs;
  FakeClocks back([=](uint64_t ns) {
    return static_cast<double>(ns) * 2.4 - (ns > at ? 1e9 : 0);  // back by 0.4 s
  });
  EXPECT_EQ(ChooseClock(Start(back, true)).source, ClockSource::kClockGettime);
  FakeClocks stands([](uint64_t) { return 42.0; });
  const ClockChoice choice = ChooseClock(Start(stands, true));
  EXPECT_EQ(choice.source, ClockSource::kClockGettime);
  EXPECT_NE(choice.notice.find("stood still"), std::string::npos) << choice.notice;
}

TEST(ChooseClock, RefusesAnImpossibleRateAndAMissingCounter) {
  FakeClocks slow(Constant(1e4));
  EXPECT_EQ(ChooseClock(Start(slow, true)).source, ClockSource::kClockGettime);
  FakeClocks clocks(Constant(2.4e9));
  StartReadings readings = Start(clocks, true);
  readings.counter = ClockSource::kClockGettime;
  const ClockChoice choice = ChooseClock(readings);
  EXPECT_EQ(choice.source, ClockSource::kClockGettime);
  EXPECT_FALSE(choice.notice.empty());
}

TEST(MeasureDrift, SteadyCounterHasNone) {
  FakeClocks clocks(Constant(2.4e9));
  const StartReadings start = Start(clocks, true);
  clocks.Wait(10'000 * kMs);
  const Drift drift = MeasureDrift(ChooseClock(start).hz, start.begin, clocks.Read());
  ASSERT_TRUE(drift.ppm);
  EXPECT_NEAR(*drift.ppm, 0, 0.1);
  EXPECT_EQ(drift.notice, "");
}

TEST(MeasureDrift, FrequencyStepInTheMiddleOfTheRunIsFound) {
  // 1 s at 2.4 GHz, then 1 s at 2.88 GHz: the whole run is 10 % faster than its start.
  const uint64_t begin = 5'000'000'000;
  FakeClocks clocks(Step(begin + 1000 * kMs, 2.4e9, 2.88e9));
  const StartReadings start = Start(clocks, true);
  clocks.Wait(2000 * kMs - 2 * kHalf);
  const Drift drift = MeasureDrift(ChooseClock(start).hz, start.begin, clocks.Read());
  ASSERT_TRUE(drift.ppm);
  EXPECT_NEAR(*drift.ppm, 100'000, 10);
  EXPECT_NE(drift.notice.find("faster"), std::string::npos) << drift.notice;
  EXPECT_NE(drift.notice.find("too long by 10 %"), std::string::npos) << drift.notice;
}

TEST(MeasureDrift, SlowingCounterMakesTimesTooShort) {
  const Reading begin{.counter = 0, .raw_ns = 0, .width = 0, .went_back = false};
  const Reading end{
      .counter = 1'999'000'000, .raw_ns = 1'000'000'000, .width = 0, .went_back = false};
  const Drift drift = MeasureDrift(2e9, begin, end);
  ASSERT_TRUE(drift.ppm);
  EXPECT_NEAR(*drift.ppm, -500, 0.01);
  EXPECT_NE(drift.notice.find("too short by 0.05 %"), std::string::npos) << drift.notice;
}

TEST(MeasureDrift, NoticeBeginsAboveTwoHundredPpm) {
  const Reading begin{.counter = 0, .raw_ns = 0, .width = 0, .went_back = false};
  Reading end{.counter = 1'000'199'000, .raw_ns = 1'000'000'000, .width = 0, .went_back = false};
  EXPECT_EQ(MeasureDrift(1e9, begin, end).notice, "");
  end.counter = 1'000'201'000;
  EXPECT_NE(MeasureDrift(1e9, begin, end).notice, "");
}

TEST(MeasureDrift, CounterThatWentBackHasNoRate) {
  const Reading begin{.counter = 1000, .raw_ns = 0, .width = 0, .went_back = false};
  const Reading end{.counter = 999, .raw_ns = 1'000'000, .width = 0, .went_back = false};
  const Drift drift = MeasureDrift(1e9, begin, end);
  EXPECT_FALSE(drift.ppm);
  EXPECT_NE(drift.notice.find("cannot be trusted"), std::string::npos);
}

TEST(SmallestStep, IsTheTickOfACoarseClock) {
  uint64_t reads = 0;
  EXPECT_EQ(SmallestStep([&] { return reads++ / 1000 * 40; }), 40u);  // 1,000 reads per tick
  reads = 0;
  EXPECT_EQ(SmallestStep([&] {
              ++reads;
              return reads * 3 + reads / 50 * 100;
            }),
            3u);
  EXPECT_EQ(SmallestStep([] { return uint64_t{5}; }), 0u);
}

TEST(SmallestStep, IgnoresStepsBack) {
  uint64_t reads = 0;
  EXPECT_EQ(SmallestStep([&] {
              ++reads;
              return 1'000'000 + 7 * reads - (reads % 10 == 0 ? 500 : 0);
            }),
            7u);
}

TEST(MedianCost, IgnoresInterruptedBatches) {
  uint64_t now = 0;
  uint64_t reads = 0;
  EXPECT_DOUBLE_EQ(MedianCost([&] { return now += ++reads % 300 == 0 ? 100'000 : 25; }), 25);
}

}  // namespace
}  // namespace verbscope
