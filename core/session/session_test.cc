// What holds for every session: both records, limits, interruption, failures.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "core/session/session_test_util.h"
#include "transports/control/peer_link.h"

namespace verbscope {
namespace {

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
  auto [client, server] = ConnectedPair();
  Outcome outcome;
  std::thread thread([&, connection = std::move(server)]() mutable {
    ResponderOptions options;
    options.control_path.loopback = true;
    RunResponder(std::move(connection), ContextOf(responder_provider_, responder_interrupt_),
                 options, outcome.responder);
  });
  RequesterOptions options;
  options.plan = SmallPlan();
  options.control_path.loopback = true;
  RunRequester(std::move(client), ContextOf(broken, requester_interrupt_), options,
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
  auto [client, server] = ConnectedPair();
  { const Connection gone = std::move(server); }
  Record record;
  RequesterOptions options;
  options.plan = SmallPlan();
  options.control_path.loopback = true;
  RunRequester(std::move(client), ContextOf(requester_provider_, requester_interrupt_), options,
               record);
  EXPECT_EQ(record.exit_code, 5);
  EXPECT_EQ(record.verdict, "error");
  EXPECT_EQ(fabric_->live().total(), 0);
}

TEST_F(SessionTest, FramesOutOfOrderEndTheSessionWithASentence) {
  auto [client, server] = ConnectedPair();
  auto link = PeerLink::Start(std::move(client));
  ASSERT_TRUE(link);
  Record record;
  std::thread thread([&, connection = std::move(server)]() mutable {
    RunResponder(std::move(connection), ContextOf(responder_provider_, responder_interrupt_), {},
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
