#include "core/plan/mode_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

namespace verbscope {
namespace {

Plan DefaultPlan() {
  Plan plan;
  plan.command = kEventVsPoll;
  plan.repeat = 3;
  plan.tx_depth = 2048;
  plan.rx_depth = 2048;
  SetDefaultModes(plan);
  SetDefaultLoads(plan);
  return plan;
}

TEST(ModePlanTest, TheDefaultPlanIsValidAndKnowsItsTime) {
  const Plan plan = DefaultPlan();
  EXPECT_TRUE(Validate(plan));
  EXPECT_TRUE(CheckCombination(plan));
  EXPECT_TRUE(Bound(plan, {}));
  EXPECT_GT(PlannedNs(plan), 45 * (plan.duration_ns + plan.warmup_ns));
}

TEST(ModePlanTest, LoadsStandInTheOrderOfTheirRates) {
  Plan plan = DefaultPlan();
  ASSERT_TRUE(ParseLoads("50%,100K,80%,1000,2.5", plan));
  const std::vector<Load> loads = LoadsOf(plan);
  ASSERT_EQ(loads.size(), 7u);
  EXPECT_EQ(loads.front().kind, LoadKind::kClosed);
  EXPECT_EQ(loads[1].rate_per_s, 2.5);
  EXPECT_EQ(loads[2].rate_per_s, 1'000);
  EXPECT_EQ(loads[3].rate_per_s, 100'000);
  EXPECT_EQ(loads[4].busy_share_percent, 50);
  EXPECT_EQ(loads[5].busy_share_percent, 80);
  EXPECT_EQ(loads.back().kind, LoadKind::kStream);
}

TEST(ModePlanTest, ModesTakeTurnsFromRunToRun) {
  const Plan plan = DefaultPlan();
  const std::vector<ModePoint> points = ModePointsOf(plan);
  ASSERT_EQ(points.size(), 3u * 5 * 3);
  const auto order = [&points](size_t from) {
    return std::vector<size_t>{points[from].mode, points[from + 1].mode, points[from + 2].mode};
  };
  EXPECT_EQ(order(0), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(order(15), (std::vector<size_t>{2, 1, 0}));
  EXPECT_EQ(order(30), (std::vector<size_t>{0, 1, 2}));
  std::set<std::tuple<uint32_t, size_t, size_t>> each;
  for (const ModePoint& point : points) each.insert({point.run, point.load, point.mode});
  EXPECT_EQ(each.size(), points.size());
}

TEST(ModePlanTest, EveryPointIsAValidPlanOfItsOwn) {
  Plan plan = DefaultPlan();
  plan.moderations = {{.count = 16, .period_us = 8}};
  plan.busy_shares_percent.clear();
  for (const Load& load : LoadsOf(plan)) {
    for (const Mode& mode : ModesOf(plan)) {
      const Plan point = PlanOfPoint(plan, load, mode);
      EXPECT_TRUE(Validate(point));
      EXPECT_TRUE(CheckCombination(point)) << ToText(mode);
      EXPECT_EQ(point.moderations.size(), mode.moderation ? 1u : 0u);
      EXPECT_EQ(point.rate_per_s, load.rate_per_s);
    }
  }
  EXPECT_TRUE(CheckCombination(PlanOfBusyRate(plan)));
}

TEST(ModePlanTest, SolicitedModeCannotStream) {
  Plan plan = DefaultPlan();
  const Mode solicited{.wait = {.kind = WaitKind::kSolicited}, .moderation = {}};
  EXPECT_FALSE(Unsuited(plan, {.kind = LoadKind::kClosed}, solicited));
  EXPECT_FALSE(Unsuited(plan, {.kind = LoadKind::kOpen, .busy_share_percent = 80}, solicited));
  EXPECT_TRUE(Unsuited(plan, {.kind = LoadKind::kStream}, solicited));
  EXPECT_FALSE(Unsuited(plan, {.kind = LoadKind::kStream}, {}));
}

TEST(ModePlanTest, ListsAreTakenAsWritten) {
  const Expected<std::vector<WaitMode>> modes = ParseModes("event,busy:pause,hybrid:5us");
  ASSERT_TRUE(modes);
  ASSERT_EQ(modes->size(), 3u);
  EXPECT_EQ(modes->at(2).spin_ns, 5'000);
  const Expected<std::vector<Moderation>> moderations = ParseModerations("16:8us,64:1ms");
  ASSERT_TRUE(moderations);
  EXPECT_EQ(moderations->at(1), (Moderation{.count = 64, .period_us = 1'000}));
  EXPECT_EQ(ToText(Mode{{.kind = WaitKind::kEvent}, moderations->front()}), "event 16:8us");
}

TEST(ModePlanTest, WhatIsNoListIsRefused) {
  Plan plan;
  for (const char* text : {"", ",", "busy,", "busy,,event", "busy,busy", "poll", "hybrid"}) {
    EXPECT_FALSE(ParseModes(text)) << text;
  }
  for (const char* text : {"", "0", "-5", "1000,1000", "80%,80%", "0%", "101%", "%", "x%", "1G",
                           "nan", "inf", "1e99", "1000 ", "nan%"}) {
    EXPECT_FALSE(ParseLoads(text, plan)) << text;
  }
  for (const char* text : {"", "16", "16:", "0:8us", "16:0us", "16:500ns", "65536:1us", "1:65536us",
                           "16:8us,16:8us", "16:8us:3"}) {
    EXPECT_FALSE(ParseModerations(text)) << text;
  }
}

TEST(ModePlanTest, OptionsThatDoNotFitAreRefused) {
  const auto refused = [](auto change) {
    Plan plan = DefaultPlan();
    change(plan);
    return !CheckCombination(plan);
  };
  EXPECT_TRUE(refused([](Plan& plan) { plan.sizes_bytes = {1, 2}; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.iterations = 5; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.qps = 2; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.modes.clear(); }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.rx_depth = 100; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.rates_per_s = {0.1}; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.verify = true; }));
  EXPECT_FALSE(CheckWait(DefaultPlan(), true, {.kind = WaitKind::kEvent}));
}

TEST(ModePlanTest, ValuesOutsideTheirRangesAreRefused) {
  Plan plan = DefaultPlan();
  plan.rates_per_s = {2e9};
  EXPECT_FALSE(Validate(plan));
  plan = DefaultPlan();
  plan.busy_shares_percent = {0.5};
  EXPECT_FALSE(Validate(plan));
  plan = DefaultPlan();
  plan.modes.push_back(plan.modes.front());
  EXPECT_FALSE(Validate(plan));
  plan = DefaultPlan();
  plan.p99_limit_ns = -1;
  EXPECT_FALSE(Validate(plan));
}

}  // namespace
}  // namespace verbscope
