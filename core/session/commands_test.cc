// Every measuring command as a whole session on the fake device.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/session/session_test_util.h"

namespace verbscope {
namespace {

// One side measures, the other one's memory is read.
TEST_F(SessionTest, ReadLatHasTheSamplesOfTheRequester) {
  Plan plan = SmallPlan();
  plan.command = "read-lat";
  plan.sizes_bytes = {0, 1, 5000};
  const Outcome outcome = RunBoth(plan);
  for (const Record* record : {&outcome.requester, &outcome.responder}) {
    ASSERT_FALSE(record->error) << record->error->ToText();
    EXPECT_EQ(record->verdict, "pass");
    EXPECT_EQ(record->results.size(), 6u);
    EXPECT_EQ(Samples(*record, "requester"), 3u * 200);
    EXPECT_EQ(Samples(*record, "responder"), 0u);
    for (const Result& result : record->results) {
      EXPECT_TRUE(result.complete);
      EXPECT_EQ(result.point.op, "read");
      if (result.side != "requester") continue;
      EXPECT_EQ(result.metrics.latency->definition, "round_trip");
      EXPECT_EQ(result.metrics.latency->ended_by, "send_completion");
      ASSERT_TRUE(result.metrics.warmup);
      EXPECT_EQ(result.metrics.warmup->samples, 20u);
    }
  }
  EXPECT_EQ(fabric_->live().total(), 0);
}

class CommandTest : public SessionTest, public testing::WithParamInterface<const char*> {
 protected:
  static Plan PlanOf(const std::string& command) {
    Plan plan = SmallPlan();
    plan.command = command;
    plan.verify = true;
    plan.sizes_bytes = {1, 64, 5000};
    if (command == "atomic-lat") plan.sizes_bytes = {8};
    if (command.ends_with("-bw")) {
      plan.tx_depth = 16;
      plan.qps = 2;
      plan.post_list = 3;
    }
    return plan;
  }
};

TEST_P(CommandTest, BothSidesPassAndAgreeOnEveryResult) {
  const Plan plan = PlanOf(GetParam());
  const Outcome outcome = RunBoth(plan);
  for (const Record* record : {&outcome.requester, &outcome.responder}) {
    ASSERT_FALSE(record->error) << record->error->ToText();
    EXPECT_EQ(record->verdict, "pass");
    EXPECT_EQ(record->results.size(), 2 * plan.sizes_bytes.size());
    for (const Result& result : record->results) {
      EXPECT_TRUE(result.complete);
      if (result.side != "requester") continue;
      const Metrics& metrics = result.metrics;
      if (metrics.latency) {
        EXPECT_EQ(metrics.latency->samples, 200u);
        EXPECT_EQ(metrics.warmup->samples, 20u);
      } else {
        ASSERT_TRUE(metrics.bandwidth);
        EXPECT_EQ(metrics.bandwidth->messages, 200u);
        EXPECT_EQ(metrics.bandwidth->bytes, 200 * result.point.size_bytes);
        EXPECT_EQ(metrics.warmup_bandwidth->messages, 20u);
      }
    }
  }
  EXPECT_EQ(fabric_->live().total(), 0);
}

TEST_P(CommandTest, RunsForATimeAndWithoutWarmup) {
  Plan plan = PlanOf(GetParam());
  plan.iterations.reset();
  plan.duration_ns = 5'000'000;
  plan.warmup_iterations = 0;
  const Outcome outcome = RunBoth(plan);
  ASSERT_FALSE(outcome.requester.error) << outcome.requester.error->ToText();
  EXPECT_EQ(outcome.requester.exit_code, 0);
  EXPECT_EQ(outcome.responder.exit_code, 0);
}

INSTANTIATE_TEST_SUITE_P(All, CommandTest,
                         testing::Values("send-lat", "write-lat", "read-lat", "atomic-lat",
                                         "send-bw", "write-bw", "read-bw"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_F(SessionTest, TheReceiverOfAStreamCountsWhatItGets) {
  Plan plan = SmallPlan();
  plan.command = "send-bw";
  plan.tx_depth = 32;
  const Outcome outcome = RunBoth(plan);
  ASSERT_FALSE(outcome.requester.error) << outcome.requester.error->ToText();
  ASSERT_EQ(outcome.requester.results.size(), 2u);
  for (const Result& result : outcome.requester.results) {
    ASSERT_TRUE(result.metrics.bandwidth) << result.side;
    EXPECT_EQ(result.metrics.bandwidth->messages, 200u) << result.side;
  }
}

TEST_F(SessionTest, InBothDirectionsEachSideTellsWhatItSent) {
  for (const char* command : {"send-bw", "write-bw", "read-bw"}) {
    Plan plan = SmallPlan();
    plan.command = command;
    plan.tx_depth = 16;
    plan.bidirectional = true;
    plan.verify = true;
    const Outcome outcome = RunBoth(plan);
    ASSERT_FALSE(outcome.requester.error) << command << outcome.requester.error->ToText();
    ASSERT_EQ(outcome.responder.results.size(), 2u);
    for (const Result& result : outcome.responder.results) {
      ASSERT_TRUE(result.metrics.bandwidth);
      EXPECT_EQ(result.metrics.bandwidth->messages, 200u) << command << " " << result.side;
      EXPECT_EQ(result.point.bidirectional, true);
    }
  }
}

// A newer client may know more commands than this server.
TEST_F(SessionTest, AnUnknownCommandIsRefusedWithTheKnownOnes) {
  Plan plan = SmallPlan();
  plan.command = "teleport";
  const Outcome outcome = RunBoth(plan);
  EXPECT_EQ(outcome.requester.exit_code, 2);
  EXPECT_EQ(outcome.responder.exit_code, 2);
  ASSERT_TRUE(outcome.responder.error);
  EXPECT_NE(outcome.responder.error->message.find("teleport"), std::string::npos);
}

// The server's own way of waiting may not do for a command: it says so, and both sides end alike.
TEST_F(SessionTest, AWayOfWaitingThatCannotWorkIsRefusedByTheServer) {
  Plan plan = SmallPlan();
  plan.command = "write-lat";
  LocalSettings sleeps;
  sleeps.wait = {.kind = WaitKind::kEvent};
  const Outcome outcome = RunBoth(plan, {}, sleeps);
  EXPECT_EQ(outcome.requester.exit_code, 2);
  EXPECT_EQ(outcome.responder.exit_code, 2);
  ASSERT_TRUE(outcome.requester.error);
  EXPECT_NE(outcome.requester.error->message.find("plan refused"), std::string::npos);
  EXPECT_NE(outcome.requester.error->next_step.find("--peer"), std::string::npos);
}

// A receiver cannot get more in a time than was sent in it.
TEST_F(SessionTest, OfFewMessagesTheReceiverTellsNoHigherRateThanTheSender) {
  Plan plan = SmallPlan();
  plan.command = "send-bw";
  plan.iterations = 2;
  plan.warmup_iterations = 0;
  plan.tx_depth = 1;
  plan.sizes_bytes = {100'000};
  const Outcome outcome = RunBoth(plan);
  ASSERT_FALSE(outcome.requester.error) << outcome.requester.error->ToText();
  const BandwidthMetrics& received = *outcome.requester.results.at(1).metrics.bandwidth;
  EXPECT_EQ(received.messages, 2u);
  EXPECT_GT(received.seconds, 0);
}

TEST_F(SessionTest, AnOpenLoopReportsWhatWasOfferedAndWhatWasLate) {
  for (const char* command : {"send-lat", "read-lat", "atomic-lat", "write-lat"}) {
    Plan plan = SmallPlan();
    plan.command = command;
    plan.rate_per_s = 50'000;
    plan.tx_depth = 64;
    plan.imm = plan.command == "write-lat";
    if (plan.command == "atomic-lat") plan.sizes_bytes = {8};
    const Outcome outcome = RunBoth(plan);
    ASSERT_FALSE(outcome.requester.error) << command << outcome.requester.error->ToText();
    const Result& own = outcome.requester.results.at(0);
    EXPECT_EQ(own.metrics.latency->definition, "response_time");
    EXPECT_EQ(own.metrics.latency->samples, 200u);
    EXPECT_EQ(own.metrics.load->offered_per_s, 50'000);
    EXPECT_TRUE(own.metrics.load->late_sends);
    EXPECT_EQ(own.point.rate_per_s, 50'000);
    // Who answers at another's pace has no response times of its own.
    EXPECT_FALSE(outcome.requester.results.at(1).metrics.latency);
  }
}

TEST_F(SessionTest, AnOpenLoopRunsInEveryWayOfWaiting) {
  for (const char* text : {"busy:pause", "event", "solicited", "hybrid:20us"}) {
    LocalSettings settings;
    settings.wait = ParseWaitMode(text).value();
    Plan plan = SmallPlan();
    plan.rate_per_s = 5'000;
    plan.tx_depth = 64;
    const Outcome outcome = RunBoth(plan, settings, settings);
    ASSERT_FALSE(outcome.requester.error) << text << outcome.requester.error->ToText();
    EXPECT_EQ(outcome.requester.results.at(0).metrics.cpu->lost_wakeups, 0u) << text;
  }
}

}  // namespace
}  // namespace verbscope
