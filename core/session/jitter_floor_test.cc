#include "core/session/jitter_floor.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbscope {
namespace {

// A clock that says what it is told, then goes on by ones.
struct ScriptedClock {
  static std::vector<uint64_t> readings;
  static size_t next;
  static uint64_t Now() {
    if (next < readings.size()) return readings[next++];
    return readings.back() + (++next - readings.size());
  }
};
std::vector<uint64_t> ScriptedClock::readings;
size_t ScriptedClock::next = 0;

constexpr GapLimits kLimits{.over_1us = 1'000, .over_10us = 10'000, .over_100us = 100'000};

TEST(JitterFloorTest, GapsAreCountedByTheirLengthAndTheLongestIsKept) {
  ScriptedClock::readings = {0, 20, 1'020, 1'040, 2'100, 22'100, 22'120, 400'000};
  ScriptedClock::next = 0;
  GapCounts counts;
  WatchGaps<ScriptedClock>(kLimits, 400'000, counts);
  EXPECT_EQ(counts.watched, 400'000u);
  EXPECT_EQ(counts.max, 377'880u);
  EXPECT_EQ(counts.over_1us, 3u) << "a gap of exactly 1 us is none";
  EXPECT_EQ(counts.over_10us, 2u);
  EXPECT_EQ(counts.over_100us, 1u);
  EXPECT_EQ(counts.lost, 1'060u + 20'000u + 377'880u);
}

TEST(JitterFloorTest, CountsBecomeRatesAndShares) {
  const JitterFloor floor = MakeJitterFloor({.watched = 500'000'000,
                                             .max = 90'000,
                                             .lost = 5'000'000,
                                             .over_1us = 100,
                                             .over_10us = 10,
                                             .over_100us = 0},
                                            TickScale());
  EXPECT_DOUBLE_EQ(floor.seconds, 0.5);
  EXPECT_EQ(floor.max_gap_ns, 90'000);
  EXPECT_DOUBLE_EQ(floor.gaps_over_1us_per_s, 200);
  EXPECT_DOUBLE_EQ(floor.gaps_over_10us_per_s, 20);
  EXPECT_DOUBLE_EQ(floor.gaps_over_100us_per_s, 0);
  EXPECT_DOUBLE_EQ(floor.lost_share, 0.01);
}

TEST(JitterFloorTest, AnInterruptEndsTheWatch) {
  int asked = 0;
  const JitterFloor floor = MeasureJitterFloor(Clock::Calibrate(), int64_t{3600} * 1'000'000'000,
                                               [&] { return ++asked > 1; });
  EXPECT_EQ(asked, 2);
  EXPECT_GT(floor.seconds, 0);
  EXPECT_GT(floor.max_gap_ns, 0);
}

}  // namespace
}  // namespace verbscope
