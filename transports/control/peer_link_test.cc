#include "transports/control/peer_link.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <future>
#include <set>
#include <vector>

#include "transports/control/error_json.h"
#include "transports/control/handshake.h"
#include "transports/control/peer_link_test_support.h"
#include "transports/control/test_support.h"

namespace verbscope {
namespace {

using control_test::ConnectedPair;
using control_test::Contains;
using control_test::ErrorOf;
using control_test::Late;
using control_test::LinkAndPeer;
using control_test::LinkOn;
using control_test::Patient;
using control_test::SendRaw;
using control_test::Signal;
using control_test::Soon;
using control_test::TcpPair;
using nlohmann::json;
using std::chrono::milliseconds;

TEST(PeerLinkTest, FramesGoBothWaysInOrder) {
  auto [a, b] = TcpPair();
  const auto client = LinkOn(std::move(a));
  const auto server = LinkOn(std::move(b));
  ASSERT_TRUE(client->Send({{"type", "plan"}, {"n", 1}}, Late()).has_value());
  ASSERT_TRUE(client->Send({{"type", "ready"}}, Late()).has_value());
  EXPECT_EQ((*server->Receive("plan", Late()))["n"], 1);
  EXPECT_TRUE(server->Receive("ready", Late()).has_value());
  ASSERT_TRUE(server->Send({{"type", "ready"}}, Late()).has_value());
  EXPECT_TRUE(client->Receive("ready", Late()).has_value());
  EXPECT_FALSE(client->loss().has_value());
}

TEST(PeerLinkTest, HeartbeatsAreSentWithoutBeingAskedAndNeverReceived) {
  PeerLinkOptions options = Patient();
  options.heartbeat_interval = milliseconds(1);
  LinkAndPeer t(options);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*t.peer.Receive(Late()), (json{{"type", "heartbeat"}}));
  }
  t.Say({{"type", "heartbeat"}});
  t.Say({{"type", "plan"}});
  EXPECT_TRUE(t.link->Receive("plan", Late()).has_value());
}

TEST(PeerLinkTest, AFrameReadAheadByTheHandshakeIsNotLost) {
  auto [a, b] = ConnectedPair();
  const json hello = {{"type", "hello"},
                      {"magic", "verbscope"},
                      {"protocol", {{"min", 1}, {"max", 1}}},
                      {"tool", {{"name", "verbscope"}, {"version", "1"}}}};
  SendRaw(a.fd(), *EncodeFrame(hello) + *EncodeFrame({{"type", "plan"}}));
  LocalHello local;
  local.tool_version = "1";
  ASSERT_TRUE(ServerHandshake(b, local, Late()).has_value());
  const auto link = LinkOn(std::move(b));
  EXPECT_TRUE(link->Receive("plan", Late()).has_value());
}

TEST(PeerLinkTest, AnotherTypeThanExpectedIsAProtocolError) {
  LinkAndPeer t;
  t.Say({{"type", "results"}});
  const Error error = ErrorOf(t.link->Receive("ready", Late()));
  EXPECT_EQ(error.message, "protocol: expected \"ready\", got \"results\"");
  EXPECT_EQ(error.error_class, ErrorClass::kRun);
  EXPECT_EQ(error.side, Side::kPeer);
}

TEST(PeerLinkTest, ReceiveEndsAtItsDeadline) {
  LinkAndPeer t;
  const Error error = ErrorOf(t.link->Receive("ready", Soon()));
  EXPECT_EQ(error.errno_value, ETIMEDOUT);
  EXPECT_EQ(error.error_class, ErrorClass::kRun);
  EXPECT_TRUE(Contains(error.message, "no \"ready\" from the peer this process within"));
  EXPECT_FALSE(t.link->loss().has_value()) << "late is not lost";
}

TEST(PeerLinkTest, AnAbortIsThePeersOwnErrorAndStaysTheAnswer) {
  LinkAndPeer t;
  t.Say({{"type", "abort"},
         {"error", {{"class", "setup"}, {"side", "local"}, {"message", "port 1 is DOWN"}}}});
  for (int i = 0; i < 2; ++i) {
    const Error error = ErrorOf(t.link->Receive("ready", Late()));
    EXPECT_EQ(error.message, "port 1 is DOWN");
    EXPECT_EQ(error.error_class, ErrorClass::kSetup);
    EXPECT_EQ(error.side, Side::kPeer);
  }
}

TEST(PeerLinkTest, WhatOnlyEndedThePeersProcessIsABrokenRunHere) {
  for (const char* name : {"interrupted", "deadline"}) {
    LinkAndPeer t;
    t.Say({{"type", "abort"}, {"error", {{"class", name}, {"message", "m"}}}});
    EXPECT_EQ(ErrorOf(t.link->Receive("ready", Late())).error_class, ErrorClass::kRun) << name;
  }
}

TEST(PeerLinkTest, SendAbortTellsThePeerWhy) {
  LinkAndPeer t;
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = "RETRY_EXC_ERR";
  t.link->SendAbort(error);
  EXPECT_EQ(t.NextFrame(), (json{{"type", "abort"}, {"error", ErrorToWire(error)}}));
}

TEST(PeerLinkTest, SendersInManyThreadsDoNotMixTheirFrames) {
  PeerLinkOptions options = Patient();
  options.heartbeat_interval = milliseconds(1);
  LinkAndPeer t(options);
  constexpr int kThreads = 4;
  constexpr int kFrames = 50;
  std::vector<std::future<void>> senders;
  for (int id = 0; id < kThreads; ++id) {
    senders.push_back(std::async(std::launch::async, [&t, id] {
      for (int i = 0; i < kFrames; ++i) {
        const json frame = {
            {"type", "data"}, {"id", id * kFrames + i}, {"pad", std::string(5000, 'p')}};
        EXPECT_TRUE(t.link->Send(frame, Late()).has_value());
      }
    }));
  }
  std::set<int> seen;
  for (int i = 0; i < kThreads * kFrames; ++i) {
    const json frame = t.NextFrame();
    ASSERT_EQ(frame["type"], "data");
    seen.insert(frame["id"].get<int>());
  }
  EXPECT_EQ(seen.size(), size_t{kThreads * kFrames});
  for (auto& sender : senders) sender.get();
}

TEST(PeerLinkTest, InterruptIsReportedUntilItIsIgnored) {
  WakeEvent interrupt = *WakeEvent::Make();
  PeerLinkOptions options = Patient();
  options.interrupt_fd = interrupt.fd();
  LinkAndPeer t(options);
  auto waiting = std::async(std::launch::async, [&] { return t.link->Receive("results", Late()); });
  interrupt.Notify();
  EXPECT_EQ(ErrorOf(waiting.get()).error_class, ErrorClass::kInterrupted);
  t.Say({{"type", "results"}});
  EXPECT_EQ(ErrorOf(t.link->Receive("results", Late())).error_class, ErrorClass::kInterrupted);
  t.link->IgnoreInterrupt();
  EXPECT_TRUE(t.link->Receive("results", Late()).has_value());
}

TEST(PeerLinkTest, ARemovedCallbackNeverRuns) {
  LinkAndPeer t;
  Signal lost;
  Signal frame;
  t.link->SetOnLoss(lost.Setter());
  t.link->SetOnFrame("data", [set = frame.Setter()](const json&) { set(); });
  t.link->SetOnLoss(nullptr);
  t.link->SetOnFrame("data", nullptr);
  t.Say({{"type", "data"}});
  EXPECT_TRUE(t.link->Receive("data", Late()).has_value());
  t.peer.Shutdown(/*both=*/false);
  EXPECT_FALSE(t.link->Receive("x", Late()).has_value());
  t.link.reset();  // the thread has ended: nothing can run any more
  EXPECT_EQ(lost.count(), 0);
  EXPECT_EQ(frame.count(), 0);
}

TEST(PeerLinkTest, OnFrameRunsOnArrivalAndTheFrameIsStillReceived) {
  LinkAndPeer t;
  Signal arrived;
  t.link->SetOnFrame("stop", [set = arrived.Setter()](const json& frame) {
    EXPECT_EQ(frame["why"], "time");
    set();
  });
  t.Say({{"type", "other"}});
  t.Say({{"type", "stop"}, {"why", "time"}});
  arrived.Await();
  EXPECT_EQ(arrived.count(), 1);
  EXPECT_TRUE(t.link->Receive("other", Late()).has_value());
  EXPECT_TRUE(t.link->Receive("stop", Late()).has_value());
}

TEST(PeerLinkTest, OnFrameRunsAtOnceForAFrameThatWaits) {
  LinkAndPeer t;
  Signal later;
  t.link->SetOnFrame("later", [set = later.Setter()](const json&) { set(); });
  t.Say({{"type", "abort"}});
  t.Say({{"type", "later"}});
  later.Await();  // so the abort is queued
  Signal abort;
  t.link->SetOnFrame("abort", [set = abort.Setter()](const json&) { set(); });
  EXPECT_EQ(abort.count(), 1);
}

TEST(PeerLinkTest, GoodbyeEndsAtItsDeadline) {
  LinkAndPeer t;
  const Status bye = t.link->Goodbye(Soon());
  ASSERT_FALSE(bye.has_value());
  EXPECT_EQ(bye.error().errno_value, ETIMEDOUT);
}

TEST(PeerLinkTest, AnAbortThatCrossesTheGoodbyeIsNotOverlooked) {
  LinkAndPeer t;
  t.Say({{"type", "abort"}, {"error", {{"class", "verification"}, {"message", "bad data"}}}});
  const Status bye = t.link->Goodbye(Late());
  ASSERT_FALSE(bye.has_value());
  EXPECT_EQ(bye.error().message, "bad data");
  EXPECT_EQ(bye.error().error_class, ErrorClass::kVerification);
}

}  // namespace
}  // namespace verbscope
