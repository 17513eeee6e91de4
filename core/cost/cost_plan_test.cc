#include "core/cost/cost_plan.h"

#include <gtest/gtest.h>

#include <string>

namespace verbscope {
namespace {

using Groups = std::vector<VerbGroup>;

Groups Parsed(const std::string& text) {
  const Expected<Groups> groups = ParseVerbGroups(text);
  EXPECT_TRUE(groups) << text << ": " << (groups ? "" : groups.error().ToText());
  return groups ? *groups : Groups();
}

TEST(CostPlanTest, VerbsAreMeasuredInTheOrderOfTheReportAndOnce) {
  EXPECT_EQ(Parsed("modify_qp,post_send,modify_qp"),
            (Groups{VerbGroup::kPostSend, VerbGroup::kModifyQp}));
}

TEST(CostPlanTest, TheSecondVerbOfAGroupNamesItToo) {
  EXPECT_EQ(Parsed("dereg_mr"), Groups{VerbGroup::kRegister});
  EXPECT_EQ(Parsed("ack_cq_events,get_cq_event"), Groups{VerbGroup::kGetEvent});
}

TEST(CostPlanTest, EveryGroupHasANameThatIsUnderstood) {
  for (const VerbGroup group : AllVerbGroups()) {
    EXPECT_EQ(Parsed(std::string(Name(group))), Groups{group});
    EXPECT_GT(RowsOf(group), 0u);
  }
}

TEST(CostPlanTest, WhatIsNoVerbIsNamedAndTheVerbsAreListed) {
  for (const char* text : {"post", "", ",", "post_send,", "POST_SEND", "post_send poll_cq"}) {
    const Expected<Groups> groups = ParseVerbGroups(text);
    ASSERT_FALSE(groups) << text;
    EXPECT_EQ(groups.error().error_class, ErrorClass::kUsage);
    EXPECT_NE(groups.error().cause.find("req_notify_cq"), std::string::npos);
  }
}

TEST(CostPlanTest, APlanKnowsHowLongItTakes) {
  constexpr int64_t kSecond = 1'000'000'000;
  EXPECT_LT(PlannedNs(CostPlan()), 20 * kSecond);
  EXPECT_LT(PlannedNs(QuickCostPlan()), 3 * kSecond);
  CostPlan few = QuickCostPlan();
  few.groups = {VerbGroup::kNotify};
  EXPECT_LT(PlannedNs(few), PlannedNs(QuickCostPlan()));
}

TEST(CostPlanTest, ADeadlineThatWasAskedForIsTheDeadline) {
  CostPlan plan;
  EXPECT_GT(EffectiveDeadlineNs(plan), PlannedNs(plan));
  plan.deadline_ns = 5;
  EXPECT_EQ(EffectiveDeadlineNs(plan), 5);
}

}  // namespace
}  // namespace verbscope
