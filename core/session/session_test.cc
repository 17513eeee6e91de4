// Whole sessions, both roles in one process over a socket pair, on the fake device.
#include "core/session/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "core/base/interrupt.h"
#include "transports/control/peer_link.h"
#include "transports/control/socket.h"
#include "transports/fake/fake_device.h"

namespace verbscope {
namespace {

Plan SmallPlan() {
  Plan plan;
  plan.iterations = 200;
  plan.warmup_iterations = 20;
  return plan;
}

class SessionTest : public testing::Test {
 protected:
  struct Outcome {
    Record requester;
    Record responder;
  };

  std::pair<Connection, Connection> Connect() {
    auto pair = MakePair();
    EXPECT_TRUE(pair);
    Connection a(std::move(pair->first));
    Connection b(std::move(pair->second));
    a.MarkIdentified();
    b.MarkIdentified();
    return {std::move(a), std::move(b)};
  }

  SessionContext Context(DeviceProvider& provider, Interrupt& interrupt) {
    return {.provider = provider, .interrupt = interrupt, .notice = [](const std::string&) {}};
  }

  Outcome RunBoth(const Plan& plan, LocalSettings requester = {}, LocalSettings responder = {}) {
    auto [client, server] = Connect();
    Outcome outcome;
    std::thread thread([&, connection = std::move(server)]() mutable {
      ResponderOptions options;
      options.settings = responder;
      options.limits = limits_;
      options.control_path.loopback = true;
      RunResponder(std::move(connection), Context(responder_provider_, responder_interrupt_),
                   options, outcome.responder);
    });
    RequesterOptions options;
    options.plan = plan;
    options.settings = requester;
    options.peer = peer_settings_;
    options.control_path.loopback = true;
    RunRequester(std::move(client), Context(requester_provider_, requester_interrupt_), options,
                 outcome.requester);
    thread.join();
    return outcome;
  }

  std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  FakeProvider requester_provider_{fabric_, {DefaultFakeDevice("fake0", 1)}};
  FakeProvider responder_provider_{fabric_, {DefaultFakeDevice("fake1", 2)}};
  Interrupt requester_interrupt_;
  Interrupt responder_interrupt_;
  ServerLimits limits_;
  PeerSettings peer_settings_;
};

uint64_t Samples(const Record& record, const std::string& side) {
  uint64_t samples = 0;
  for (const Result& result : record.results) {
    if (result.side == side && result.metrics.latency) samples += result.metrics.latency->samples;
  }
  return samples;
}

TEST_F(SessionTest, BothSidesGetBothRecordsAndAgree) {
  Plan plan = SmallPlan();
  plan.sizes_bytes = {0, 1, 64, 5000};
  plan.repeat = 2;
  const Outcome outcome = RunBoth(plan);
  for (const Record* record : {&outcome.requester, &outcome.responder}) {
    ASSERT_FALSE(record->error) << record->error->ToText();
    EXPECT_EQ(record->verdict, "pass");
    EXPECT_EQ(record->exit_code, 0);
    EXPECT_EQ(record->results.size(), 16u);  // 4 sizes, 2 repeats, 2 sides
    EXPECT_EQ(Samples(*record, "requester"), 8u * 200);
    EXPECT_EQ(Samples(*record, "responder"), 8u * 200);
    ASSERT_TRUE(record->remote);
    EXPECT_NE(record->local.device->name, record->remote->device->name);
    EXPECT_EQ(record->path_mtu_bytes, 1024u);
  }
  EXPECT_EQ(outcome.requester.local.role, "requester");
  EXPECT_EQ(outcome.requester.remote->role, "responder");
  EXPECT_EQ(fabric_->live().total(), 0);
}

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

TEST_F(SessionTest, WarmupIsKeptApart) {
  const Outcome outcome = RunBoth(SmallPlan());
  const Metrics& metrics = outcome.requester.results.at(0).metrics;
  ASSERT_TRUE(metrics.warmup);
  EXPECT_EQ(metrics.warmup->samples, 20u);
  EXPECT_EQ(metrics.latency->samples, 200u);
  Plan none = SmallPlan();
  none.warmup_iterations = 0;
  none.warmup_ns = 0;
  EXPECT_FALSE(RunBoth(none).requester.results.at(0).metrics.warmup);
}

TEST_F(SessionTest, DurationModeGivesTheSameRecordAsIterations) {
  Plan plan = SmallPlan();
  plan.iterations.reset();
  plan.duration_ns = 20'000'000;
  const Outcome outcome = RunBoth(plan);
  EXPECT_EQ(outcome.requester.verdict, "pass");
  EXPECT_GT(Samples(outcome.requester, "requester"), 0u);
  EXPECT_EQ(Samples(outcome.requester, "requester"), Samples(outcome.responder, "responder"));
}

TEST_F(SessionTest, EachSideWaitsItsOwnWay) {
  LocalSettings event;
  event.wait = {.kind = WaitKind::kEvent};
  LocalSettings solicited;
  solicited.wait = {.kind = WaitKind::kSolicited};
  const Outcome outcome = RunBoth(SmallPlan(), event, solicited);
  ASSERT_EQ(outcome.requester.verdict, "pass");
  const Result& own = outcome.requester.results.at(0);
  const Result& peer = outcome.requester.results.at(1);
  EXPECT_EQ(own.point.wait, "event");
  EXPECT_EQ(peer.point.wait, "solicited");
  EXPECT_EQ(own.metrics.cpu->lost_wakeups, 0u);
  EXPECT_EQ(peer.metrics.cpu->lost_wakeups, 0u);
}

TEST_F(SessionTest, PeerSettingsReachTheServer) {
  peer_settings_.wait = WaitMode{.kind = WaitKind::kBusyPause};
  EXPECT_EQ(RunBoth(SmallPlan()).requester.results.at(1).point.wait, "busy:pause");
  peer_settings_.device = "no-such-device";
  const Outcome outcome = RunBoth(SmallPlan());
  EXPECT_EQ(outcome.requester.exit_code, 2);
  EXPECT_EQ(outcome.requester.error->side, Side::kPeer);
  EXPECT_EQ(outcome.responder.exit_code, 2);
}

TEST_F(SessionTest, AServerRefusesAPlanAboveItsLimits) {
  limits_.max_memory_bytes = 4096;
  Plan plan = SmallPlan();
  plan.sizes_bytes = {1 << 20};
  const Outcome outcome = RunBoth(plan);
  EXPECT_EQ(outcome.requester.exit_code, 2);
  EXPECT_EQ(outcome.responder.exit_code, 2);
  EXPECT_EQ(outcome.requester.error->side, Side::kPeer);
  EXPECT_TRUE(outcome.requester.results.empty());
  EXPECT_EQ(fabric_->live().total(), 0);
}

TEST_F(SessionTest, InterruptEndsBothSidesWithTheirOwnCodesAndAPartialRecord) {
  Plan plan = SmallPlan();
  plan.iterations.reset();
  plan.duration_ns = 60'000'000'000;
  std::thread user([this] {
    // Once the queue pairs exist, the run is about to start or running.
    while (fabric_->live().qps < 2) std::this_thread::yield();
    requester_interrupt_.Raise();
  });
  const Outcome outcome = RunBoth(plan);
  user.join();
  EXPECT_EQ(outcome.requester.exit_code, 130);
  EXPECT_EQ(outcome.responder.exit_code, 5);
  EXPECT_EQ(outcome.responder.error->side, Side::kPeer);
  EXPECT_EQ(fabric_->live().total(), 0);
}

TEST_F(SessionTest, TheDeadlineOfTheCommandIsCode6) {
  Plan plan = SmallPlan();
  plan.iterations = kMaxIterations;
  plan.deadline_ns = 300'000'000;
  const Outcome outcome = RunBoth(plan);
  EXPECT_EQ(outcome.requester.exit_code, 6) << outcome.requester.error->ToText();
  // On a slow machine it may pass before the measured phase; what there is must say so.
  for (const Result& result : outcome.requester.results) EXPECT_FALSE(result.complete);
}

// One fault, two views: the first real error of both sides, and never a flush.
TEST_F(SessionTest, ABrokenQueuePairIsExplainedOnBothSides) {
  FakeDeviceOptions device = DefaultFakeDevice("fake0", 1);
  device.fault = {.nth = 3, .errno_value = EINVAL, .call = "ibv_modify_qp"};  // RTR to RTS
  FakeProvider broken(fabric_, {device});
  auto [client, server] = Connect();
  Outcome outcome;
  std::thread thread([&, connection = std::move(server)]() mutable {
    ResponderOptions options;
    options.control_path.loopback = true;
    RunResponder(std::move(connection), Context(responder_provider_, responder_interrupt_), options,
                 outcome.responder);
  });
  RequesterOptions options;
  options.plan = SmallPlan();
  options.control_path.loopback = true;
  RunRequester(std::move(client), Context(broken, requester_interrupt_), options,
               outcome.requester);
  thread.join();
  ASSERT_TRUE(outcome.requester.error);
  ASSERT_TRUE(outcome.responder.error);
  EXPECT_EQ(outcome.requester.error->errno_value, EINVAL);
  EXPECT_EQ(outcome.responder.error->side, Side::kPeer);
  EXPECT_EQ(outcome.responder.error->errno_value, EINVAL);
  EXPECT_NE(outcome.responder.error->status, "WR_FLUSH_ERR");
  EXPECT_EQ(fabric_->live().total(), 0);
}

TEST_F(SessionTest, APeerThatClosesIsARunThatBroke) {
  auto [client, server] = Connect();
  { const Connection gone = std::move(server); }
  Record record;
  RequesterOptions options;
  options.plan = SmallPlan();
  options.control_path.loopback = true;
  RunRequester(std::move(client), Context(requester_provider_, requester_interrupt_), options,
               record);
  EXPECT_EQ(record.exit_code, 5);
  EXPECT_EQ(record.verdict, "error");
  EXPECT_EQ(fabric_->live().total(), 0);
}

TEST_F(SessionTest, FramesOutOfOrderEndTheSessionWithASentence) {
  auto [client, server] = Connect();
  auto link = PeerLink::Start(std::move(client));
  ASSERT_TRUE(link);
  Record record;
  std::thread thread([&, connection = std::move(server)]() mutable {
    RunResponder(std::move(connection), Context(responder_provider_, responder_interrupt_), {},
                 record);
  });
  const Deadline deadline = Deadline::After(std::chrono::seconds(5));
  ASSERT_TRUE((*link)->Send({{"type", "endpoint"}, {"qpn", 1}}, deadline));
  EXPECT_FALSE((*link)->Receive("plan_ok", deadline));
  thread.join();
  EXPECT_EQ(record.exit_code, 5);
  EXPECT_NE(record.error->message.find("plan"), std::string::npos);
}

}  // namespace
}  // namespace verbscope
