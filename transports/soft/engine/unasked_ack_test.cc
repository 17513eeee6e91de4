// ACKs that nobody asked for, between two devices of this kind: few on the wire, and still every
// request is known to be done, what is lost is repeated, and nobody who waits for an ACK waits
// longer.
#include <gtest/gtest.h>

#include <algorithm>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

ConnectOptions Unasked() { return {.timeout = 14, .acks_unasked = true}; }

Work Quiet(Connection& c, uint64_t id) {
  return {.id = id, .local = {c.a.Piece(0, 64)}, .flags = 0};
}

Work Read(Connection& c, uint64_t id) {
  return {.id = id,
          .opcode = IBV_WR_RDMA_READ,
          .local = {c.a.Piece(64, 64)},
          .remote = c.b.Address(0),
          .rkey = c.b.key};
}

size_t CountOf(const World& world, int from, Opcode opcode) {
  return static_cast<size_t>(std::ranges::count_if(world.log, [=](const Sent& sent) {
    return sent.from == from && sent.header.opcode == opcode;
  }));
}

size_t AckRequests(const World& world) {
  return static_cast<size_t>(std::ranges::count_if(
      world.log, [](const Sent& sent) { return sent.from == 0 && sent.header.ack_request; }));
}

TEST(UnaskedAck, AMessageThatNobodyWaitsForIsAcknowledgedAfterAWhile) {
  Connection c(Unasked());
  c.b.Receive(1, {c.b.Piece(0, 64)});
  const uint64_t begun = c.world.now_ns;
  ASSERT_EQ(c.a.Post(Quiet(c, 1)), 0);
  c.world.Run(10 * kMillisecond);
  EXPECT_EQ(c.b.PollReceive().size(), 1U);
  EXPECT_EQ(AckRequests(c.world), 0U);
  ASSERT_EQ(CountOf(c.world, 1, Opcode::kAck), 1U);
  EXPECT_EQ(CountOf(c.world, 0, Opcode::kSendOnly), 1U) << "repeated, though it had arrived";
  const uint64_t taken = c.world.log.back().time_ns - begun;
  EXPECT_GE(taken, 100 * kMicrosecond);
  EXPECT_LT(taken, kMillisecond);
  // It counts: the QP has nothing outstanding.
  EXPECT_EQ(c.a.qp->NextTimer(), std::nullopt);
}

TEST(UnaskedAck, ManyMessagesShareOne) {
  Connection c(Unasked());
  for (uint64_t id = 0; id < 48; ++id) c.b.Receive(id, {c.b.Piece(0, 64)});
  for (uint64_t id = 0; id < 48; ++id) {
    ASSERT_EQ(c.a.Post(Quiet(c, id)), 0);
    c.world.Run(5 * kMicrosecond);
  }
  c.world.Run(10 * kMillisecond);
  EXPECT_EQ(c.b.PollReceive().size(), 48U);
  EXPECT_GE(CountOf(c.world, 1, Opcode::kAck), 3U);
  EXPECT_LE(CountOf(c.world, 1, Opcode::kAck), 5U);
}

TEST(UnaskedAck, WhoWaitsForAnAckGetsItAtOnce) {
  Connection c(Unasked());
  for (uint64_t id = 0; id < 3; ++id) c.b.Receive(id, {c.b.Piece(0, 64)});
  ASSERT_EQ(c.a.Post(Quiet(c, 1)), 0);
  ASSERT_EQ(c.a.Post(Quiet(c, 2)), 0);
  ASSERT_EQ(c.a.Post({.id = 3, .local = {c.a.Piece(0, 64)}}), 0);
  c.world.Run(20 * kMicrosecond);
  EXPECT_EQ(c.a.PollSend().size(), 1U);
  EXPECT_EQ(CountOf(c.world, 1, Opcode::kAck), 1U);
  c.world.Run(10 * kMillisecond);
  EXPECT_EQ(CountOf(c.world, 1, Opcode::kAck), 1U) << "it acknowledged all three";
}

TEST(UnaskedAck, ALostMessageIsRepeatedAndThenAsks) {
  Connection c(Unasked());
  c.b.Receive(1, {c.b.Piece(0, 64)});
  bool lost = false;
  c.world.lose = [&lost](const Sent& sent) { return sent.from == 0 && !std::exchange(lost, true); };
  ASSERT_EQ(c.a.Post(Quiet(c, 1)), 0);
  c.world.Run(kSecond);
  EXPECT_EQ(c.b.PollReceive().size(), 1U);
  EXPECT_EQ(CountOf(c.world, 0, Opcode::kSendOnly), 2U);
  EXPECT_EQ(AckRequests(c.world), 1U);
  EXPECT_EQ(c.a.qp->NextTimer(), std::nullopt);
}

TEST(UnaskedAck, ALostAckCostsARepetitionAndNoMore) {
  Connection c(Unasked());
  c.b.Receive(1, {c.b.Piece(0, 64)});
  bool lost = false;
  c.world.lose = [&lost](const Sent& sent) { return sent.from == 1 && !std::exchange(lost, true); };
  ASSERT_EQ(c.a.Post(Quiet(c, 1)), 0);
  c.world.Run(kSecond);
  EXPECT_EQ(c.b.PollReceive().size(), 1U);
  EXPECT_EQ(CountOf(c.world, 0, Opcode::kSendOnly), 2U);
  EXPECT_EQ(c.a.qp->NextTimer(), std::nullopt);
}

// The answer to a READ says that everything before it has come.
TEST(UnaskedAck, AReadResponseStandsForIt) {
  Connection c(Unasked());
  c.b.Receive(1, {c.b.Piece(0, 64)});
  ASSERT_EQ(c.a.Post(Quiet(c, 1)), 0);
  ASSERT_EQ(c.a.Post(Read(c, 2)), 0);
  c.world.Run(10 * kMillisecond);
  EXPECT_EQ(c.a.PollSend().size(), 1U);
  EXPECT_EQ(CountOf(c.world, 1, Opcode::kAck), 0U);
}

// Their answers are their acknowledgements, however many there are at once.
TEST(UnaskedAck, ReadsAreNotCounted) {
  ConnectOptions options = Unasked();
  options.rd_atomic = 32;
  Connection c(options);
  for (uint64_t id = 0; id < 20; ++id) ASSERT_EQ(c.a.Post(Read(c, id)), 0);
  c.world.Run(10 * kMillisecond);
  EXPECT_EQ(c.a.PollSend().size(), 20U);
  EXPECT_EQ(CountOf(c.world, 1, Opcode::kAck), 0U);
}

// A QP that fails for a reason of its own still says what it has received.
TEST(UnaskedAck, LeavesFromErrorToo) {
  Connection c(Unasked());
  c.b.Receive(1, {c.b.Piece(0, 64)});
  ASSERT_EQ(c.a.Post(Quiet(c, 1)), 0);
  c.world.Run(20 * kMicrosecond);
  EXPECT_EQ(c.b.PollReceive().size(), 1U);
  ASSERT_EQ(CountOf(c.world, 1, Opcode::kAck), 0U);
  // It reads what it may not.
  ASSERT_EQ(c.b.Post({.id = 9,
                      .opcode = IBV_WR_RDMA_READ,
                      .local = {c.b.Piece(0, 64)},
                      .remote = c.a.Address(0),
                      .rkey = c.a.key + 1}),
            0);
  c.world.Run(10 * kMillisecond);
  EXPECT_EQ(c.b.state(), IBV_QPS_ERR);
  EXPECT_EQ(CountOf(c.world, 1, Opcode::kAck), 1U);
}

TEST(UnaskedAck, AShortTimeoutAsksForEveryAck) {
  ConnectOptions options = Unasked();
  options.timeout = 8;
  Connection c(options);
  c.b.Receive(1, {c.b.Piece(0, 64)});
  ASSERT_EQ(c.a.Post(Quiet(c, 1)), 0);
  c.world.Run(kMillisecond);
  EXPECT_EQ(AckRequests(c.world), 1U);
}

TEST(UnaskedAck, OtherDevicesAreAskedAndAnsweredByTheRule) {
  ConnectOptions options = Unasked();
  options.acks_unasked = false;
  Connection c(options);
  c.b.Receive(1, {c.b.Piece(0, 64)});
  ASSERT_EQ(c.a.Post(Quiet(c, 1)), 0);
  c.world.Run(20 * kMicrosecond);
  EXPECT_EQ(AckRequests(c.world), 1U);
  EXPECT_EQ(CountOf(c.world, 1, Opcode::kAck), 1U);
}

// A responder that has not gone to RTS sends them as well.
TEST(UnaskedAck, InRtrToo) {
  const ConnectOptions options = Unasked();
  World world({}, options.channel, options.seed);
  Endpoint a(world.a, options);
  Endpoint b(world.b, options);
  a.Connect(b, options);
  b.Connect(a, options, IBV_QPS_RTR);
  b.Receive(1, {b.Piece(0, 64)});
  ASSERT_EQ(a.Post({.id = 1, .local = {a.Piece(0, 64)}, .flags = 0}), 0);
  world.Run(10 * kMillisecond);
  EXPECT_EQ(CountOf(world, 1, Opcode::kAck), 1U);
}

}  // namespace
}  // namespace verbscope::soft::testing
