// event-vs-poll as a whole session on the fake device.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/plan/mode_plan.h"
#include "core/session/session_test_util.h"

namespace verbscope {
namespace {

Plan ModesPlan() {
  Plan plan;
  plan.command = kEventVsPoll;
  plan.quick = true;
  plan.duration_ns = 5'000'000;
  plan.warmup_ns = 1'000'000;
  plan.repeat = 2;
  plan.tx_depth = 256;
  plan.rx_depth = 256;
  plan.modes = {{.kind = WaitKind::kBusy}, {.kind = WaitKind::kEvent}};
  plan.rates_per_s = {2'000};
  plan.busy_shares_percent = {50};
  return plan;
}

TEST_F(SessionTest, EventVsPollRunsEveryPointInTurns) {
  const Plan plan = ModesPlan();
  const Outcome outcome = RunBoth(plan);
  for (const Record* record : {&outcome.requester, &outcome.responder}) {
    ASSERT_FALSE(record->error) << record->error->ToText();
    EXPECT_EQ(record->verdict, "pass");
    EXPECT_EQ(record->exit_code, 0);
    ASSERT_EQ(record->results.size(), 2u * 2 * 4 * 2);
    ASSERT_EQ(record->checks.size(), 1u);
    EXPECT_EQ(record->checks[0].name, "lost-wakeups");
    EXPECT_EQ(record->checks[0].status, "pass");
    ASSERT_TRUE(record->local.jitter_floor);
    ASSERT_TRUE(record->remote);
    EXPECT_EQ(record->remote->jitter_floor.has_value(), true);
    EXPECT_GT(record->local.jitter_floor->seconds, 0.05);
  }
  std::vector<std::string> waits;
  for (const Result& result : outcome.requester.results) {
    if (result.side == "requester") waits.push_back(result.point.wait);
  }
  EXPECT_EQ(waits[0], "busy");
  EXPECT_EQ(waits[1], "event");
  EXPECT_EQ(waits[8], "event");
  EXPECT_EQ(waits[9], "busy");
  ASSERT_TRUE(outcome.requester.modes);
  EXPECT_FALSE(outcome.responder.modes);
  EXPECT_EQ(outcome.requester.modes->rows.size(), 2u * 4);
  EXPECT_GT(outcome.requester.modes->busy_sustains_per_s.value_or(0), 0);
  EXPECT_TRUE(outcome.requester.modes->unsuited.empty());
  EXPECT_EQ(fabric_->live().total(), 0);
}

TEST_F(SessionTest, TheOfferedShareIsTheSameOnBothSidesAndForAllModes) {
  const Outcome outcome = RunBoth(ModesPlan());
  std::vector<double> rates;
  for (const Record* record : {&outcome.requester, &outcome.responder}) {
    for (const Result& result : record->results) {
      if (result.point.busy_share_percent) rates.push_back(result.point.rate_per_s.value_or(0));
    }
  }
  ASSERT_EQ(rates.size(), 2u * 2 * 2 * 2);
  EXPECT_TRUE(std::ranges::all_of(rates, [&rates](double rate) { return rate == rates[0]; }));
  EXPECT_NEAR(rates[0], *outcome.requester.modes->busy_sustains_per_s / 2, 1);
}

TEST_F(SessionTest, WhatOneDeviceCannotDoIsLeftOutAndListed) {
  Plan plan = ModesPlan();
  plan.moderations = {{.count = 16, .period_us = 8}};  // the fake device holds nothing back
  plan.busy_shares_percent.clear();
  const Outcome outcome = RunBoth(plan);
  ASSERT_FALSE(outcome.requester.error) << outcome.requester.error->ToText();
  EXPECT_EQ(outcome.requester.verdict, "pass");
  ASSERT_EQ(outcome.requester.modes->unsuited.size(), 3u);
  EXPECT_EQ(outcome.requester.modes->unsuited[0],
            "event 16:8us, closed loop: ibv_modify_cq is not offered for fake0");
  EXPECT_EQ(outcome.requester.results.size(), 2u * 2 * 3 * 2);
}

TEST_F(SessionTest, AnInterruptEndsTheWatchOfTheHost) {
  Plan plan = ModesPlan();
  plan.quick = false;
  requester_interrupt_.Raise();
  const Outcome outcome = RunBoth(plan);
  ASSERT_TRUE(outcome.requester.error);
  EXPECT_EQ(outcome.requester.error->error_class, ErrorClass::kInterrupted);
  EXPECT_EQ(outcome.requester.exit_code, 130);
  ASSERT_TRUE(outcome.responder.error);
  EXPECT_TRUE(outcome.requester.results.empty());
}

TEST_F(SessionTest, AServerOfTooShortRunsRefusesThePlanByItsTime) {
  limits_.max_run_ns = 1'000'000'000;
  const Outcome outcome = RunBoth(ModesPlan());
  ASSERT_TRUE(outcome.requester.error);
  EXPECT_NE(outcome.requester.error->message.find("it would run for"), std::string::npos);
  EXPECT_EQ(outcome.requester.exit_code, 2);
}

}  // namespace
}  // namespace verbscope
