#include "core/plan/cq_plan.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/plan/plan_json.h"

namespace verbscope {
namespace {

Plan ScalePlan() {
  Plan plan;
  plan.command = kCqScale;
  plan.qps = 16;
  plan.tx_depth = 16;
  plan.duration_ns = kScaleDurationNs;
  return plan;
}

using Counts = std::vector<uint32_t>;

TEST(CqPlanTest, ListsAreNumbersFromOneWithoutDuplicates) {
  EXPECT_EQ(ParseCounts("1,2,4").value(), (Counts{1, 2, 4}));
  EXPECT_EQ(ParseCounts("4,1,4").value(), (Counts{4, 1}));
  EXPECT_EQ(ParseCounts("7").value(), Counts{7});
  for (const char* text : {"", "0", "1,", ",1", "1,,2", "1-3", "x", "4294967296", "1 ,2", "-1"}) {
    const auto counts = ParseCounts(text);
    ASSERT_FALSE(counts) << text;
    EXPECT_EQ(counts.error().error_class, ErrorClass::kUsage);
    EXPECT_FALSE(counts.error().next_step.empty());
  }
}

TEST(CqPlanTest, EveryNumberOfCqsHasItsContrastOfAsManyThreadsAtOne) {
  Plan plan = ScalePlan();
  plan.cqs = {2, 4};
  plan.cq_depths = {256, 4096};
  EXPECT_EQ(ScalePointsOf(plan), (std::vector<ScalePoint>{{1, 1, 0, 0},
                                                          {2, 2, 0, 0},
                                                          {1, 2, 0, 0},
                                                          {4, 4, 0, 0},
                                                          {1, 4, 0, 0},
                                                          {1, 1, 256, 0},
                                                          {1, 1, 4096, 0},
                                                          {1, 1, 0, 1}}));
}

TEST(CqPlanTest, TheDefaultLeavesOutCqsThatWouldHaveNoQueuePair) {
  Plan plan = ScalePlan();
  EXPECT_EQ(CqsOf(plan), (Counts{1, 2, 4}));
  plan.qps = 2;
  EXPECT_EQ(CqsOf(plan), (Counts{1, 2}));
  EXPECT_TRUE(CheckCombination(plan));
  plan.cqs = {1, 4};
  EXPECT_FALSE(CheckCombination(plan));
}

TEST(CqPlanTest, ACqHoldsAllThatIsInFlightOfItsQueuePairs) {
  Plan plan = ScalePlan();
  EXPECT_EQ(LeastCqDepth(plan, 1), 256U);
  EXPECT_EQ(LeastCqDepth(plan, 4), 64U);
  EXPECT_EQ(LeastCqDepth(plan, 3), 96U);  // one of them has six queue pairs
  plan.cq_depths = {256};
  EXPECT_TRUE(CheckCombination(plan));
  plan.cq_depths = {4096, 255};
  const Status status = CheckCombination(plan);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("need 256 entries"), std::string::npos);
}

TEST(CqPlanTest, RangesHoldWhateverThePeerSends) {
  const auto refused = [](auto change) {
    Plan plan = ScalePlan();
    change(plan);
    return !CheckCombination(plan) && !Bound(plan, {});
  };
  EXPECT_TRUE(refused([](Plan& plan) { plan.cqs = {0}; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.cqs = {2, 2}; }));
  EXPECT_TRUE(refused([](Plan& plan) {
    plan.qps = kMaxQps;
    plan.cqs = {kMaxCqs + 1};
  }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.cq_depths = {kMaxCqDepth + 1}; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.cq_depths = {300, 300}; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.duration_ns = kMostScaleDurationNs + 1; }));
  EXPECT_FALSE(refused([](Plan& plan) { plan.duration_ns = kMostScaleDurationNs; }));
  EXPECT_TRUE(refused([](Plan& plan) {
    plan.command = "send-bw";
    plan.cqs = {1};
  })) << "for cq-scale only";
}

TEST(CqPlanTest, ThePlannedTimeCoversEveryPointAndItsWarmUp) {
  Plan plan = ScalePlan();
  plan.cqs = {1};
  const int64_t one = PlannedNs(plan);
  EXPECT_GE(one, plan.duration_ns + ScaleWarmupNs(plan));
  plan.cq_depths = {256, 512};
  EXPECT_GE(PlannedNs(plan) - one, 2 * (plan.duration_ns + ScaleWarmupNs(plan)));
}

TEST(CqPlanTest, TheListsTravel) {
  Plan plan = ScalePlan();
  plan.cqs = {1, 8};
  plan.cq_depths = {1024};
  const auto back = PlanFromJson(ToJson(plan));
  ASSERT_TRUE(back) << back.error().ToText();
  EXPECT_EQ(*back, plan);
  nlohmann::json older = ToJson(plan);
  older.erase("cqs");
  older.erase("cq_depths");
  EXPECT_TRUE(PlanFromJson(older)->cqs.empty());
}

// The deep CQ is the requester's alone.
TEST(CqPlanTest, AServerRefusesNoDeepCqForMemoryThatItDoesNotUse) {
  Plan plan = ScalePlan();
  const uint64_t before = EstimatedMemoryBytes(plan);
  plan.cq_depths = {kMaxCqDepth};
  EXPECT_EQ(EstimatedMemoryBytes(plan), before);
  EXPECT_TRUE(Bound(plan, {}));
}

}  // namespace
}  // namespace verbscope
