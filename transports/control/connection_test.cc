#include "transports/control/connection.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <future>

#include "transports/control/test_support.h"

namespace verbscope {
namespace {

using control_test::CloseWithReset;
using control_test::ConnectedPair;
using control_test::Contains;
using control_test::Late;
using control_test::SendRaw;
using control_test::Soon;
using control_test::TcpPair;
using nlohmann::json;

// A frame of about `bytes` bytes.
json FrameOf(size_t bytes) { return {{"type", "data"}, {"pad", std::string(bytes, 'p')}}; }

// Sends until the socket takes no more.
void FillUp(Connection& connection) {
  while (true) {
    const auto taken = connection.TrySend(FrameOf(100'000));
    ASSERT_TRUE(taken.has_value());
    if (!*taken) return;
  }
}

TEST(ConnectionTest, FramesArriveInOrderAndWhole) {
  auto [a, b] = TcpPair();
  ASSERT_TRUE(a.Send({{"type", "one"}, {"n", 1}}, Late()).has_value());
  ASSERT_TRUE(a.Send({{"type", "two"}}, Late()).has_value());
  EXPECT_EQ(*b.Receive(Late()), (json{{"type", "one"}, {"n", 1}}));
  EXPECT_EQ(*b.Receive(Late()), (json{{"type", "two"}}));
  EXPECT_EQ(b.end(), ConnectionEnd::kOpen);
}

TEST(ConnectionTest, AFrameNearTheLimitPassesWhileThePeerReads) {
  auto [a, b] = ConnectedPair();
  const json big = FrameOf(kMaxFrameBytes - 100);
  auto sent = std::async(std::launch::async, [&a = a, &big] { return a.Send(big, Late()); });
  const auto got = b.Receive(Late());
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(*got, big);
  EXPECT_TRUE(sent.get().has_value());
  EXPECT_GT(b.last_frame_bytes(), kMaxFrameBytes - 100);
  EXPECT_EQ(b.bytes_received(), b.last_frame_bytes() + kFrameHeaderBytes);
}

TEST(ConnectionTest, AddressesAreThoseOfTheSocket) {
  auto [a, b] = TcpPair();
  EXPECT_EQ(a.local_address().ToText(), b.remote_address().ToText());
  EXPECT_EQ(a.remote_address().ToText(), b.local_address().ToText());
  EXPECT_EQ(a.remote_address().Host(), "127.0.0.1");
  auto [c, d] = ConnectedPair();
  EXPECT_EQ(c.remote_address().ToText(), "this process");
}

TEST(ConnectionTest, SilenceEndsAtTheDeadlineWithTheClassOfThePhase) {
  auto [a, b] = ConnectedPair();
  const auto before = a.Receive(Soon());
  ASSERT_FALSE(before.has_value());
  EXPECT_EQ(before.error().errno_value, ETIMEDOUT);
  EXPECT_EQ(before.error().error_class, ErrorClass::kSetup);
  EXPECT_TRUE(Contains(before.error().message, "no frame from peer this process within"));
  a.MarkIdentified();
  SendRaw(b.fd(), std::string("\0\0\0\x20{", 5));
  const auto after = a.Receive(Soon());
  ASSERT_FALSE(after.has_value());
  EXPECT_EQ(after.error().error_class, ErrorClass::kRun);
  EXPECT_TRUE(Contains(after.error().message, "no complete frame"));
  EXPECT_EQ(a.end(), ConnectionEnd::kOpen) << "the rest may still come";
}

TEST(ConnectionTest, InterruptEndsAWait) {
  auto [a, b] = ConnectedPair();
  WakeEvent interrupt = *WakeEvent::Make();
  auto waiting =
      std::async(std::launch::async, [&, &c = a] { return c.Receive(Late(), interrupt.fd()); });
  interrupt.Notify();
  const auto got = waiting.get();
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().error_class, ErrorClass::kInterrupted);
}

TEST(ConnectionTest, ACloseIsEndOfFileAfterWhatWasSentBefore) {
  auto [a, b] = TcpPair();
  ASSERT_TRUE(a.Send({{"type", "last"}}, Late()).has_value());
  a.Shutdown(/*both=*/false);
  EXPECT_EQ((*b.Receive(Late()))["type"], "last");
  for (int i = 0; i < 2; ++i) {
    const auto end = b.Receive(Late());
    ASSERT_FALSE(end.has_value());
    EXPECT_EQ(b.end(), ConnectionEnd::kClosed);
    EXPECT_EQ(end.error().message,
              "peer " + b.remote_address().ToText() + " closed the connection");
  }
}

TEST(ConnectionTest, ACloseInTheMiddleOfAFrameIsSaid) {
  auto [a, b] = ConnectedPair();
  SendRaw(a.fd(), std::string("\0\0\0\x20{", 5));
  a.Shutdown(/*both=*/false);
  const auto end = b.Receive(Late());
  ASSERT_FALSE(end.has_value());
  EXPECT_TRUE(Contains(end.error().message, "closed the connection in the middle of a frame"));
}

TEST(ConnectionTest, AResetIsToldFromAClose) {
  auto [a, b] = TcpPair();
  CloseWithReset(std::move(a));
  const auto end = b.Receive(Late());
  ASSERT_FALSE(end.has_value());
  EXPECT_EQ(b.end(), ConnectionEnd::kReset);
  EXPECT_EQ(end.error().errno_value, ECONNRESET);
  EXPECT_TRUE(Contains(end.error().message, "reset the connection"));
}

TEST(ConnectionTest, AResetThatASendSawFirstIsStillAResetForTheReceiver) {
  auto [a, b] = TcpPair();
  CloseWithReset(std::move(a));
  EXPECT_EQ(WaitFd(b.fd(), POLLIN, Late(), -1), WaitResult::kReady);
  const Status sent = b.Send({{"type", "x"}}, Late());
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().errno_value, ECONNRESET);
  EXPECT_FALSE(b.Receive(Late()).has_value());
  EXPECT_EQ(b.end(), ConnectionEnd::kReset);
}

TEST(ConnectionTest, SendingToAClosedPeerIsAnErrorAndNoSignal) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR) << "a raised SIGPIPE ends this test";
  auto [a, b] = ConnectedPair();
  { const Connection gone = std::move(b); }
  const Status sent = a.Send({{"type", "x"}}, Late());
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().errno_value, EPIPE);
  EXPECT_TRUE(Contains(sent.error().message, "closed the connection"));
}

TEST(ConnectionTest, APeerThatTakesNothingEndsTheSendAndKeepsTheFraming) {
  auto [a, b] = ConnectedPair();
  const Status stuck = a.Send(FrameOf(kMaxFrameBytes - 100), Soon());
  ASSERT_FALSE(stuck.has_value());
  EXPECT_EQ(stuck.error().errno_value, ETIMEDOUT);
  EXPECT_TRUE(Contains(stuck.error().message, "took no data"));
  auto next = std::async(std::launch::async, [&c = a] {
    return c.Send({{"type", "next"}}, Late());
  });
  EXPECT_EQ((*b.Receive(Late()))["type"], "data");
  EXPECT_EQ((*b.Receive(Late()))["type"], "next");
  EXPECT_TRUE(next.get().has_value());
}

TEST(ConnectionTest, TrySendDropsWhatDoesNotFitAndNeverWaits) {
  auto [a, b] = ConnectedPair();
  FillUp(a);
  EXPECT_FALSE(*a.TrySend({{"type", "dropped"}}));
  auto last = std::async(std::launch::async, [&c = a] {
    return c.Send({{"type", "last"}}, Late());
  });
  std::string type;
  while (type != "last") {
    const auto frame = b.Receive(Late());
    ASSERT_TRUE(frame.has_value()) << frame.error().message;
    type = (*frame)["type"].get<std::string>();
    EXPECT_NE(type, "dropped");
  }
  EXPECT_TRUE(last.get().has_value());
}

TEST(ConnectionTest, TryReceiveNeverWaits) {
  auto [a, b] = ConnectedPair();
  EXPECT_FALSE(b.TryReceive()->has_value());
  ASSERT_TRUE(a.Send({{"type", "x"}}, Late()).has_value());
  EXPECT_TRUE(b.TryReceive()->has_value());
}

TEST(ConnectionTest, AForeignPeerIsNamedWithItsAddress) {
  auto [a, b] = TcpPair();
  SendRaw(a.fd(), "HTTP/1.1 400 Bad Request\r\n\r\n");
  const auto got = b.Receive(Late());
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(b.end(), ConnectionEnd::kForeign);
  EXPECT_EQ(b.foreign(), ForeignPeer::kHttp);
  EXPECT_EQ(got.error().error_class, ErrorClass::kSetup);
  EXPECT_EQ(got.error().message,
            "peer " + b.remote_address().ToText() + " speaks HTTP, not verbscope");
}

TEST(ConnectionTest, AMalformedLaterFrameIsNoForeignPeer) {
  auto [a, b] = ConnectedPair();
  b.MarkIdentified();
  ASSERT_TRUE(a.Send({{"type", "x"}}, Late()).has_value());
  SendRaw(a.fd(), "GET / HTTP/1.1\r\n");
  EXPECT_TRUE(b.Receive(Late()).has_value());
  const auto got = b.Receive(Late());
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(b.end(), ConnectionEnd::kMalformed);
  EXPECT_EQ(got.error().error_class, ErrorClass::kRun);
  EXPECT_TRUE(Contains(got.error().message, "sent a malformed frame: frame length"));
}

TEST(ConnectionTest, ShutdownWakesASenderThatWaits) {
  auto [a, b] = ConnectedPair();
  FillUp(a);
  auto stuck = std::async(std::launch::async, [&c = a] { return c.Send({{"type", "x"}}, Late()); });
  a.Shutdown(/*both=*/true);
  const Status sent = stuck.get();
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().errno_value, EPIPE);
}

TEST(ConnectionTest, AFrameThatCannotBeEncodedIsOurBugAndSendsNothing) {
  auto [a, b] = ConnectedPair();
  const Status sent = a.Send(FrameOf(kMaxFrameBytes), Late());
  ASSERT_FALSE(sent.has_value());
  EXPECT_EQ(sent.error().error_class, ErrorClass::kInternal);
  EXPECT_FALSE(b.TryReceive()->has_value());
}

}  // namespace
}  // namespace verbscope
