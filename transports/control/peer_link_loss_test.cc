// How a PeerLink notices that its peer is gone, and what its callers then see.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <future>
#include <string>
#include <thread>

#include "transports/control/peer_link_test_support.h"
#include "transports/control/test_support.h"

namespace verbscope {
namespace {

using control_test::CloseWithReset;
using control_test::ConnectedPair;
using control_test::Contains;
using control_test::ErrorOf;
using control_test::Impatient;
using control_test::Late;
using control_test::LinkAndPeer;
using control_test::LinkOn;
using control_test::Patient;
using control_test::SendRaw;
using control_test::Signal;
using control_test::TcpPair;
using nlohmann::json;
using std::chrono::milliseconds;

TEST(PeerLossTest, HeartbeatsKeepAnIdleLinkAliveBeyondTheSilenceLimit) {
  PeerLinkOptions options;
  options.heartbeat_interval = milliseconds(10);
  options.silence_limit = milliseconds(400);
  options.tick_interval = milliseconds(10);
  auto [a, b] = ConnectedPair();
  const auto one = LinkOn(std::move(a), options);
  const auto other = LinkOn(std::move(b), options);
  std::promise<void> long_enough;
  one->SetOnTick([&, ticks = 0]() mutable {
    if (++ticks == 60) long_enough.set_value();
  });
  long_enough.get_future().wait();
  EXPECT_FALSE(one->loss().has_value());
  EXPECT_FALSE(other->loss().has_value());
}

TEST(PeerLossTest, AClosedPeerIsLostAfterWhatItSentBefore) {
  LinkAndPeer t(Patient(), TcpPair());
  const std::string address = t.link->remote_address().ToText();
  t.Say({{"type", "results"}});
  t.peer.Shutdown(/*both=*/false);  // as a half-closed or a killed peer looks
  EXPECT_TRUE(t.link->Receive("results", Late()).has_value());
  const Error error = ErrorOf(t.link->Receive("results", Late()));
  EXPECT_EQ(error.error_class, ErrorClass::kRun);
  EXPECT_EQ(error.message, "peer closed the control connection (" + address + ")");
  EXPECT_EQ(t.link->Send({{"type", "x"}}, Late()).error().message, error.message);
  EXPECT_EQ(t.link->Goodbye(Late()).error().message, error.message);
}

TEST(PeerLossTest, AResetPeerIsLost) {
  LinkAndPeer t(Patient(), TcpPair());
  CloseWithReset(std::move(t.peer));
  const Error error = ErrorOf(t.link->Receive("results", Late()));
  EXPECT_TRUE(Contains(error.message, "connection reset")) << error.message;
  EXPECT_EQ(error.errno_value, ECONNRESET);
}

TEST(PeerLossTest, ASilentPeerIsLostAndToldSo) {
  LinkAndPeer t(Impatient());
  const Error error = ErrorOf(t.link->Receive("results", Late()));
  EXPECT_EQ(error.error_class, ErrorClass::kRun);
  EXPECT_EQ(error.message,
            "no heartbeat for 0.04 s: peer process stopped or host unreachable (this process)");
  const json told = t.NextFrame();
  EXPECT_EQ(told["type"], "abort");
  EXPECT_EQ(told["error"]["message"], error.message);
}

TEST(PeerLossTest, TheDefaultsEndASurvivorWithinFiveSeconds) {
  const PeerLinkOptions defaults;
  EXPECT_EQ(defaults.heartbeat_interval, milliseconds(500));
  EXPECT_LE(defaults.silence_limit + 2 * defaults.heartbeat_interval, milliseconds(5000));
  EXPECT_GE(defaults.silence_limit, 4 * defaults.heartbeat_interval);
}

TEST(PeerLossTest, TimeInWhichThisProcessStoodStillIsNoSilenceOfThePeer) {
  PeerLinkOptions options = Impatient();
  options.silence_limit = milliseconds(200);
  options.tick_interval = milliseconds(1);
  LinkAndPeer t(options);
  std::atomic<int> ticks = 0;
  std::promise<int> ticks_at_loss;
  t.link->SetOnLoss([&] { ticks_at_loss.set_value(ticks); });
  t.link->SetOnTick([&] {
    // The stall itself; nothing is awaited by it.
    if (++ticks == 1) std::this_thread::sleep_for(options.silence_limit + milliseconds(20));
  });
  // Counted as silence, the stall would end the link in the very next round, before another tick.
  EXPECT_GE(ticks_at_loss.get_future().get(), 3);
}

TEST(PeerLossTest, AMalformedFrameLosesThePeer) {
  LinkAndPeer t;
  t.Say({{"type", "plan"}});
  SendRaw(t.peer.fd(), "HTTP/1.1 200 OK\r\n");
  EXPECT_TRUE(t.link->Receive("plan", Late()).has_value());
  const Error error = ErrorOf(t.link->Receive("ready", Late()));
  EXPECT_EQ(error.error_class, ErrorClass::kRun);
  EXPECT_TRUE(Contains(error.message, "sent a malformed frame")) << error.message;
  EXPECT_EQ(t.NextFrame()["type"], "abort");
}

TEST(PeerLossTest, AFloodOfFramesLosesThePeer) {
  PeerLinkOptions options = Patient();
  options.max_queued_frames = 3;
  LinkAndPeer t(options);
  Signal lost;
  t.link->SetOnLoss(lost.Setter());
  for (int i = 0; i < 4; ++i) t.Say({{"type", "data"}});
  lost.Await();
  EXPECT_TRUE(Contains(t.link->loss()->message, "flooded"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(t.link->Receive("data", Late()).has_value());
  EXPECT_TRUE(Contains(ErrorOf(t.link->Receive("data", Late())).message, "flooded"));
}

TEST(PeerLossTest, AFloodOfBytesLosesThePeerAndReceivingMakesRoom) {
  PeerLinkOptions options = Patient();
  options.max_queued_bytes = 1500;
  LinkAndPeer t(options);
  const json kilobyte = {{"type", "data"}, {"pad", std::string(1000, 'p')}};
  for (int i = 0; i < 5; ++i) {
    t.Say(kilobyte);
    EXPECT_TRUE(t.link->Receive("data", Late()).has_value());
  }
  Signal lost;
  t.link->SetOnLoss(lost.Setter());
  t.Say(kilobyte);
  t.Say(kilobyte);
  lost.Await();
  EXPECT_TRUE(Contains(t.link->loss()->message, "flooded"));
}

TEST(PeerLossTest, LossEndsASendThatThePeerDoesNotTake) {
  LinkAndPeer t(Impatient());
  const json big = {{"type", "data"}, {"pad", std::string(kMaxFrameBytes - 100, 'p')}};
  const Status sent = t.link->Send(big, Late());
  ASSERT_FALSE(sent.has_value());
  EXPECT_TRUE(Contains(sent.error().message, "no heartbeat for")) << sent.error().message;
}

TEST(PeerLossTest, LargeFramesBothWaysAtOnceLoseNobody) {
  PeerLinkOptions options;
  options.heartbeat_interval = milliseconds(1);
  auto [a, b] = TcpPair();
  const auto one = LinkOn(std::move(a), options);
  const auto other = LinkOn(std::move(b), options);
  const json big = {{"type", "data"}, {"pad", std::string(kMaxFrameBytes - 100, 'p')}};
  const auto exchange = [&big](PeerLink& link) {
    for (int i = 0; i < 4; ++i) {
      if (!link.Send(big, Late()) || link.Receive("data", Late()) != big) return false;
    }
    return true;
  };
  auto there = std::async(std::launch::async, [&] { return exchange(*other); });
  EXPECT_TRUE(exchange(*one));
  EXPECT_TRUE(there.get());
}

TEST(PeerLossTest, OnLossRunsOnceAsSoonAsThePeerIsLost) {
  LinkAndPeer t;
  Signal lost;
  t.link->SetOnLoss(lost.Setter());
  t.peer.Shutdown(/*both=*/false);
  lost.Await();
  EXPECT_TRUE(t.link->loss().has_value());
  EXPECT_FALSE(t.link->Receive("x", Late()).has_value());
  EXPECT_EQ(lost.count(), 1);
}

TEST(PeerLossTest, OnLossRunsAtOnceForALossOfThePast) {
  LinkAndPeer t;
  t.peer.Shutdown(/*both=*/false);
  EXPECT_FALSE(t.link->Receive("x", Late()).has_value());
  Signal lost;
  t.link->SetOnLoss(lost.Setter());
  EXPECT_EQ(lost.count(), 1);
}

TEST(PeerLossTest, TicksComeWhileOneIsRegisteredAlsoAfterALoss) {
  PeerLinkOptions options = Patient();
  options.tick_interval = milliseconds(1);
  LinkAndPeer t(options);
  std::atomic<int> ticks = 0;
  std::promise<void> three;
  t.peer.Shutdown(/*both=*/false);
  EXPECT_FALSE(t.link->Receive("x", Late()).has_value());
  t.link->SetOnTick([&] {
    if (++ticks == 3) three.set_value();
  });
  three.get_future().wait();
  t.link->SetOnTick(nullptr);
  const int at_removal = ticks;
  t.link.reset();
  EXPECT_EQ(ticks, at_removal);
}

TEST(PeerLossTest, AfterGoodbyesAnEndIsNoLoss) {
  auto [a, b] = TcpPair();
  auto client = LinkOn(std::move(a));
  auto server = LinkOn(std::move(b));
  Signal lost;
  client->SetOnLoss(lost.Setter());
  auto there = std::async(std::launch::async, [&] { return server->Goodbye(Late()); });
  EXPECT_TRUE(client->Goodbye(Late()).has_value());
  EXPECT_TRUE(there.get().has_value());
  server.reset();
  EXPECT_EQ(ErrorOf(client->Receive("x", Late())).message,
            "protocol: expected \"x\", got \"goodbye\"");
  EXPECT_FALSE(client->loss().has_value());
  client.reset();
  EXPECT_EQ(lost.count(), 0);
}

TEST(PeerLossTest, APeerThatClosesUponGoodbyeHasSaidGoodbye) {
  LinkAndPeer t;
  auto bye = std::async(std::launch::async, [&] { return t.link->Goodbye(Late()); });
  EXPECT_EQ(t.NextFrame()["type"], "goodbye");
  t.peer.Shutdown(/*both=*/false);
  EXPECT_TRUE(bye.get().has_value());
}

TEST(PeerLossTest, APeerThatLeavesEarlyWithAGoodbyeStopsTheLoopButIsNotLost) {
  LinkAndPeer t;
  Signal left;
  t.link->SetOnLoss(left.Setter());
  t.Say({{"type", "goodbye"}});
  t.peer.Shutdown(/*both=*/false);
  left.Await();
  EXPECT_FALSE(t.link->loss().has_value());
  EXPECT_EQ(ErrorOf(t.link->Receive("results", Late())).message,
            "protocol: expected \"results\", got \"goodbye\"");
  EXPECT_TRUE(t.link->Goodbye(Late()).has_value());
}

// Frames that came before are no answer to the question why the peer has gone.
TEST(PeerLinkWhyLostTest, TellsTheLossWhateverFramesAreWaiting) {
  LinkAndPeer pair;
  pair.Say({{"type", "barrier"}, {"name", "done"}});
  { const Connection gone = std::move(pair.peer); }
  const Error error = pair.link->WhyLost(Late());
  EXPECT_EQ(error.error_class, ErrorClass::kRun);
  EXPECT_NE(error.message.find("closed"), std::string::npos) << error.message;
  // And the frame is still there.
  EXPECT_TRUE(pair.link->Receive("barrier", Late()));
}

TEST(PeerLinkWhyLostTest, TellsThePeersOwnErrorIfItSentOne) {
  LinkAndPeer pair;
  pair.Say({{"type", "barrier"}, {"name", "done"}});
  pair.Say({{"type", "abort"}, {"error", {{"class", "setup"}, {"message", "no such port"}}}});
  const Error error = pair.link->WhyLost(Late());
  EXPECT_EQ(error.side, Side::kPeer);
  EXPECT_NE(error.message.find("no such port"), std::string::npos) << error.message;
}

TEST(PeerLinkWhyLostTest, OfALivingPeerItSaysThatItDoesNotKnow) {
  LinkAndPeer pair;
  const Error error = pair.link->WhyLost(Deadline::After(std::chrono::milliseconds(1)));
  EXPECT_FALSE(error.message.empty());
  EXPECT_FALSE(error.next_step.empty());
}

}  // namespace
}  // namespace verbscope
