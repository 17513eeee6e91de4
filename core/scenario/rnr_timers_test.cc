#include "core/scenario/rnr_timers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/scenario/expectations.h"

namespace verbscope {
namespace {

constexpr int64_t kTimerNs = 640'000;

// Each retry waits `wait_ns`, and the way there and back takes `way_ns`.
RnrMetrics Waiting(int64_t wait_ns, int64_t way_ns) {
  RnrMetrics rnr{.nominal_ns = kTimerNs};
  for (uint32_t retry = 1; retry <= 6; ++retry) {
    rnr.attempts.push_back({.rnr_retry = retry,
                            .predicted_ns = kTimerNs * retry,
                            .time_to_error_ns = way_ns + wait_ns * retry,
                            .naks = retry + 1});
  }
  Conclude(rnr);
  return rnr;
}

CheckRow Judged(std::string_view kind, const RnrMetrics& rnr) {
  CheckRow row{.name = "timer-code-12"};
  JudgeWaits(kind, rnr, row);
  return row;
}

TEST(OneWaitTest, TheSlopeLeavesTheWayOut) {
  EXPECT_EQ(OneWaitNs(Waiting(700'000, 0).attempts), 700'000);
  EXPECT_EQ(OneWaitNs(Waiting(700'000, 50'000'000).attempts), 700'000);
  EXPECT_DOUBLE_EQ(*Waiting(1'280'000, 9).ratio, 2.0);
}

TEST(OneWaitTest, TheShortestOfSeveralTimesCounts) {
  RnrMetrics rnr = Waiting(700'000, 10'000);
  for (uint32_t retry = 1; retry <= 6; ++retry) {
    rnr.attempts.push_back({.rnr_retry = retry, .time_to_error_ns = 90'000'000 / retry});
  }
  EXPECT_EQ(OneWaitNs(rnr.attempts), 700'000);
}

TEST(OneWaitTest, OneRetryCountSaysNothing) {
  std::vector<RnrAttempt> attempts = {{.rnr_retry = 2, .time_to_error_ns = 5},
                                      {.rnr_retry = 2, .time_to_error_ns = 6},
                                      {.rnr_retry = 3}};
  EXPECT_EQ(OneWaitNs(attempts), std::nullopt);
  EXPECT_EQ(OneWaitNs({}), std::nullopt);
}

TEST(JudgeWaitsTest, AWaitOfItsTimerOrALittleMorePasses) {
  for (const int64_t wait_ns : {kTimerNs, 2'900'000L}) {
    const CheckRow row = Judged("mlx5", Waiting(wait_ns, 5'000));
    EXPECT_EQ(row.status, "pass") << row.observed;
    EXPECT_FALSE(row.source.empty());
    EXPECT_NE(row.observed.find("27 NAKs in 6 attempts"), std::string::npos) << row.observed;
  }
}

TEST(JudgeWaitsTest, LessThanTheTimerFailsButWhereATickIsListed) {
  const CheckRow listed = Judged("rxe", Waiting(kTimerNs * 9 / 10, 0));
  EXPECT_EQ(listed.status, "deviation");
  EXPECT_NE(listed.observed.find("of waits can have been over"), std::string::npos);
  RnrMetrics much = {
      .nominal_ns = 100'000'000,
      .attempts = {{.rnr_retry = 1, .predicted_ns = 100'000'000, .time_to_error_ns = 90'000'000}}};
  Conclude(much);
  EXPECT_EQ(Judged("rxe", much).status, "fail");
  for (const char* kind : {"mlx5", "soft", ""}) {
    const CheckRow row = Judged(kind, Waiting(kTimerNs * 9 / 10, 0));
    EXPECT_EQ(row.status, "fail") << kind;
    EXPECT_NE(row.observed.find("before 0.640 ms of waits can have been over"), std::string::npos)
        << row.observed;
  }
}

// One attempt that ends early is enough, whatever the slope says.
TEST(JudgeWaitsTest, OneEarlyEndFails) {
  RnrMetrics rnr = Waiting(kTimerNs * 2, 0);
  rnr.attempts[3].time_to_error_ns = kTimerNs * 3;
  EXPECT_EQ(Judged("soft", rnr).status, "fail");
}

TEST(JudgeWaitsTest, ClocksMayDisagreeALittle) {
  EXPECT_EQ(Judged("soft", Waiting(kTimerNs - 500, 0)).status, "pass");
}

TEST(JudgeWaitsTest, ALongerWaitIsADeviationAndNoFailure) {
  const CheckRow rxe = Judged("rxe", Waiting(8'000'000, 0));
  EXPECT_EQ(rxe.status, "deviation");
  EXPECT_NE(rxe.why.find("jiffies"), std::string::npos) << rxe.why;
  const CheckRow other = Judged("mlx5", Waiting(8'000'000, 0));
  EXPECT_EQ(other.status, "deviation");
  EXPECT_NE(other.why.find("longer than known"), std::string::npos) << other.why;
  EXPECT_NE(Judged("rxe", Waiting(800'000'000, 0)).why, rxe.why);
}

TEST(JudgeWaitsTest, AnErrorThatNeverCameFails) {
  RnrMetrics rnr{.nominal_ns = kTimerNs, .attempts = {{.rnr_retry = 1}, {.rnr_retry = 2}}};
  Conclude(rnr);
  EXPECT_EQ(rnr.ratio, std::nullopt);
  EXPECT_EQ(Judged("soft", rnr).status, "fail");
}

TEST(JudgeWaitsTest, UncountedNaksAreSaid) {
  RnrMetrics rnr = Waiting(kTimerNs, 0);
  rnr.attempts.front().naks.reset();
  EXPECT_NE(Judged("mlx5", rnr).observed.find("not counted"), std::string::npos);
}

TEST(WaitLimitsTest, RowsAreWiderThanTheOrdinaryOneAndHaveReasons) {
  const WaitLimits& ordinary = WaitLimitsOf("");
  for (const WaitLimits& row : WaitLimitRows()) {
    if (row.device_kind.empty()) continue;
    EXPECT_FALSE(row.why.empty()) << row.device_kind;
    EXPECT_GT(LongestNs(row, 10'000), LongestNs(ordinary, 10'000)) << row.device_kind;
  }
  EXPECT_EQ(&WaitLimitsOf("no such device"), &ordinary);
}

}  // namespace
}  // namespace verbscope
