#include "core/plan/rnr_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "core/causes/rc_timers.h"

namespace verbscope {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

using Codes = std::vector<uint32_t>;

Plan RnrPlan(Codes codes) {
  Plan plan;
  plan.command = "rnr-test";
  plan.iterations = 50;
  plan.timer_codes = std::move(codes);
  return plan;
}

TEST(TimerCodesTest, ListsRangesAndAll) {
  EXPECT_EQ(*ParseTimerCodes("1,12-14"), (Codes{1, 12, 13, 14}));
  EXPECT_EQ(*ParseTimerCodes("0"), Codes{0});
  EXPECT_EQ(*ParseTimerCodes("31,0,31,0-1"), (Codes{31, 0, 1}));
  EXPECT_EQ(ParseTimerCodes("all")->size(), 32U);
}

TEST(TimerCodesTest, AnythingElseIsRefusedByItsText) {
  for (const char* text : {"", "32", "1,", ",1", "1-", "-1", "3-1", "1 2", "x", "1,all", "0x1",
                           "99999999999999999999", "1--2", "1,12-32"}) {
    const auto codes = ParseTimerCodes(text);
    ASSERT_FALSE(codes) << text;
    EXPECT_EQ(codes.error().error_class, ErrorClass::kUsage);
    EXPECT_NE(codes.error().message.find(std::string("'") + text + "'"), std::string::npos) << text;
  }
}

TEST(TimerCodesTest, ARunThatAsksForNoneHasAHandful) {
  Plan plan = RnrPlan({});
  EXPECT_EQ(TimerCodesOf(plan).size(), 7U);
  plan.quick = true;
  EXPECT_EQ(TimerCodesOf(plan).size(), 3U);
  plan.timer_codes = {31, 2};
  EXPECT_EQ(TimerCodesOf(plan), (Codes{31, 2}));
}

TEST(SweepTest, EveryTimerHasTwoPointsOrMoreOfFiniteRetries) {
  for (uint32_t code = 0; code < kRnrTimerCodes; ++code) {
    for (const bool quick : {false, true}) {
      const TimerSweep sweep = SweepOf(code, quick);
      ASSERT_GE(sweep.retries.size(), 2U) << code;
      EXPECT_GE(sweep.repeats, 1U);
      for (size_t i = 0; i < sweep.retries.size(); ++i) {
        EXPECT_GE(sweep.retries[i], 1U);
        EXPECT_LE(sweep.retries[i], kLastFiniteRetry);
        if (i > 0) {
          EXPECT_GT(sweep.retries[i], sweep.retries[i - 1]);
        }
      }
    }
  }
}

TEST(StarvedTest, TheShortestAndTheLongestTimerOfTheList) {
  EXPECT_EQ(StarvedCodes(RnrPlan({12, 0, 31, 13})), (Codes{12, 0}));
  EXPECT_EQ(StarvedCodes(RnrPlan({31, 13})), (Codes{13, 31}));
  EXPECT_EQ(StarvedCodes(RnrPlan({7})), Codes{7});
  for (uint32_t code = 0; code < kRnrTimerCodes; ++code) {
    EXPECT_GE(StarvedBatches(code, true), 4U);
    EXPECT_LE(RnrTimerNs(code) * StarvedBatches(code, false), 4 * kSecond) << code;
  }
}

TEST(RecoveryTest, TheFirstRoundOutlastsEveryFiniteRetry) {
  for (uint32_t code = 1; code < 28; ++code) {
    Plan plan = RnrPlan({1});
    plan.rnr_timer_code = code;
    EXPECT_GT(RecoveryDelayNs(plan, 0), *RnrGiveUpNs(code, kLastFiniteRetry)) << code;
    EXPECT_LT(RecoveryDelayNs(plan, 1), RecoveryDelayNs(plan, 0));
  }
}

TEST(RecoveryTest, LongTimersHaveFewRounds) {
  Plan plan = RnrPlan({1});
  EXPECT_EQ(RecoveryRounds(plan), 50U);
  plan.rnr_timer_code = 0;
  EXPECT_EQ(RecoveryRounds(plan), 4U);
  plan.iterations = 2;
  EXPECT_EQ(RecoveryRounds(plan), 2U);
}

TEST(PlannedTest, TheTimeIsThatOfTheWaits) {
  Plan quick = RnrPlan({1, 12, 16});
  quick.quick = true;
  quick.iterations = 10;
  EXPECT_LT(PlannedNs(quick), 5 * kSecond);
  EXPECT_GT(PlannedNs(quick), kSecond / 10);
  const Plan few = RnrPlan({1, 8, 12, 16, 20, 24, 0});
  EXPECT_LT(PlannedNs(few), 20 * kSecond);
  // Two waits for one error and three in all, three more of starvation.
  EXPECT_GT(PlannedNs(few), 6 * RnrTimerNs(0));
  Codes all;
  for (uint32_t code = 0; code < kRnrTimerCodes; ++code) all.push_back(code);
  EXPECT_GT(PlannedNs(RnrPlan(all)), PlannedNs(few));
  EXPECT_LT(PlannedNs(RnrPlan(all)), 60 * kSecond);
}

TEST(PlannedTest, RoundsWithoutNumberSaturate) {
  Plan plan = RnrPlan({1});
  plan.iterations = kMaxIterations;
  EXPECT_EQ(PlannedNs(plan), std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(Bound(plan, ServerLimits{}));
}

TEST(PlannedTest, AServerRefusesWhatExceedsItsLongestRun) {
  const Plan plan = RnrPlan({0, 31});
  const auto refused = Bound(plan, {.max_run_ns = kSecond});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().error_class, ErrorClass::kSetup);
  EXPECT_NE(refused.error().message.find("it would run for"), std::string::npos);
  EXPECT_NE(refused.error().next_step.find("--timer-codes"), std::string::npos);
  EXPECT_TRUE(Bound(plan, ServerLimits{}));
}

TEST(PlannedTest, CodesAreCheckedWhereverThePlanComesFrom) {
  EXPECT_FALSE(Validate(RnrPlan({32})));
  EXPECT_FALSE(Validate(RnrPlan({3, 3})));
  EXPECT_TRUE(Validate(RnrPlan({3, 4})));
  Plan other = RnrPlan({1});
  other.command = "send-lat";
  EXPECT_FALSE(CheckCombination(other));
}

}  // namespace
}  // namespace verbscope
