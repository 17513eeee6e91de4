#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace verbscope {
namespace {

std::string Joined(const Plan& plan) {
  std::string all;
  for (const std::string& notice : PlanNotices(plan)) all += notice + "\n";
  return all;
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(PlanNoticesTest, AnOrdinaryPlanHasNone) { EXPECT_EQ(Joined(Plan{}), ""); }

TEST(PlanNoticesTest, TimerCode0IsSaidToBeTheLongestByEveryCommand) {
  for (const char* command : {"send-lat", "send-bw", "imm", "rnr-test"}) {
    Plan plan;
    plan.command = command;
    plan.rnr_timer_code = 0;
    EXPECT_TRUE(Contains(Joined(plan), "655.36 ms, and not none")) << command;
    plan.rnr_timer_code = 1;
    plan.timer_codes = {1};
    EXPECT_FALSE(Contains(Joined(plan), "655.36 ms")) << command;
  }
}

TEST(PlanNoticesTest, MoreInFlightThanReceivesIsSaid) {
  Plan plan;
  plan.command = "send-bw";
  plan.tx_depth = 64;
  plan.rx_depth = 8;
  EXPECT_TRUE(Contains(Joined(plan), "no more than 8 are on the way"));
  plan.command = "send-lat";
  EXPECT_TRUE(Contains(Joined(plan), "64 messages in flight exceed the 8 receives"));
  plan.command = "read-bw";  // takes no receives
  EXPECT_EQ(Joined(plan), "");
}

TEST(PlanNoticesTest, RnrTestSaysItsTimeAndThatItStarvesOnPurpose) {
  Plan plan;
  plan.command = "rnr-test";
  plan.iterations = 10;
  plan.timer_codes = {1};
  const std::string text = Joined(plan);
  EXPECT_TRUE(Contains(text, "rnr-test takes up to")) << text;
  EXPECT_TRUE(Contains(text, "for 1 RNR timer code and")) << text;
  EXPECT_TRUE(Contains(text, "32 messages in flight against 8 receives")) << text;
  plan.timer_codes = {1, 0};
  EXPECT_TRUE(Contains(Joined(plan), "for 2 RNR timer codes and"));
  EXPECT_TRUE(Contains(Joined(plan), "655.36 ms"));
}

}  // namespace
}  // namespace verbscope
