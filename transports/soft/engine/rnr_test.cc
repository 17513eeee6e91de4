// Receivers that are not ready: how often and how long apart the requester asks again.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"
#include "transports/soft/engine/rc_timers.h"

namespace verbscope::soft::testing {
namespace {

// The moments at which a sent a packet.
std::vector<uint64_t> Times(const World& world) {
  std::vector<uint64_t> times;
  for (const Sent& sent : world.log) {
    if (sent.from == 0) times.push_back(sent.time_ns);
  }
  return times;
}

TEST(RnrTest, TheTimerOfTheResponderIsWaitedOut) {
  EXPECT_EQ(kRnrTimerNs[0], 655'360'000U);
  EXPECT_EQ(kRnrTimerNs[26], 81'920'000U);
  EXPECT_EQ(kRnrTimerNs[31], 491'520'000U);
  for (const uint8_t code : std::initializer_list<uint8_t>{1, 5, 14, 26, 31, 0}) {
    Connection c({.rnr_retry = 2, .min_rnr_timer = code});
    c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
    c.world.Run();
    const auto times = Times(c.world);
    ASSERT_EQ(times.size(), 3U);
    // The way there and back takes 2 us of virtual time.
    EXPECT_EQ(times[1] - times[0], kRnrTimerNs[code] + 2000);
    EXPECT_EQ(times[2] - times[1], kRnrTimerNs[code] + 2000);
    const auto done = c.a.PollSend();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(done[0].vendor_err, kSyndromeRnr + code);
    EXPECT_EQ(c.a.state(), IBV_QPS_ERR);
    EXPECT_EQ(c.b.state(), IBV_QPS_RTS);
  }
}

TEST(RnrTest, RetryCountIsTheNumberOfRepetitions) {
  for (uint8_t retries = 0; retries < 7; ++retries) {
    for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE_WITH_IMM}) {
      Connection c({.rnr_retry = retries});
      c.a.Post({.id = 1, .opcode = opcode, .flags = 0});
      c.world.Run();
      EXPECT_EQ(Times(c.world).size(), retries + 1U);
      const auto done = c.a.PollSend();
      ASSERT_EQ(done.size(), 1U);
      EXPECT_EQ(done[0].status, IBV_WC_RNR_RETRY_EXC_ERR);
      EXPECT_EQ(c.a.side.engine.counters().rcvd_rnr_err, retries + 1U);
      EXPECT_EQ(c.b.side.engine.counters().send_rnr_err, retries + 1U);
    }
  }
}

TEST(RnrTest, SevenIsForEver) {
  Connection c({.rnr_retry = 7, .min_rnr_timer = 14});
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
  c.world.Run(10 * kSecond);
  EXPECT_GT(Times(c.world).size(), 1000U);
  EXPECT_TRUE(c.a.PollSend().empty());
  c.b.Receive(1, {c.b.Piece(0, 10)});
  c.world.Run();
  ASSERT_EQ(c.a.PollSend().size(), 1U);
  EXPECT_EQ(c.b.PollReceive().size(), 1U);
}

TEST(RnrTest, CountsStartAgainAfterProgress) {
  Connection c({.rnr_retry = 1, .min_rnr_timer = 14});
  for (uint64_t i = 0; i < 10; ++i) c.a.Post({.id = i, .local = {c.a.Piece(0, 10)}});
  c.world.Run(10 * kMicrosecond);  // the first is refused
  for (int i = 0; i < 10; ++i) {
    c.b.Receive(1, {c.b.Piece(0, 10)});
    c.world.Run(kRnrTimerNs[14] + 2 * kMicrosecond);  // it is taken, the next one refused
  }
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 10U);
  EXPECT_TRUE(std::ranges::all_of(done, [](const ibv_wc& wc) { return wc.status == 0; }));
}

TEST(RnrTest, WhatFollowsIsHeldBackAndInOrder) {
  Connection c({.min_rnr_timer = 14});
  c.a.Fill(8);
  for (size_t i = 0; i < 5; ++i) c.a.Post({.id = i, .local = {c.a.Piece(i * 100, 10 + i)}});
  c.world.Run(100 * kMicrosecond);
  EXPECT_EQ(Times(c.world).size(), 5U) << "nothing is sent while the timer runs";
  for (size_t i = 0; i < 5; ++i) c.b.Receive(i, {c.b.Piece(i * 100, 100)});
  c.world.Run();
  const auto received = c.b.PollReceive();
  ASSERT_EQ(received.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].byte_len, 10 + i);
    EXPECT_TRUE(c.b.Same(i * 100, c.a, i * 100, 10 + i));
  }
  EXPECT_EQ(c.a.PollSend().size(), 5U);
}

TEST(RnrTest, ALongWriteWithImmediateRepeatsOnlyItsEnd) {
  Connection c;
  c.a.Fill(8);
  c.a.Post({.id = 1,
            .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
            .local = {c.a.Piece(0, 5000)},
            .remote = c.b.Address(0),
            .rkey = c.b.key,
            .immediate = 5});
  c.world.Run(100 * kMicrosecond);
  c.b.Receive(9, {});
  c.world.Run();
  const auto received = c.b.PollReceive();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].byte_len, 5000U);
  EXPECT_TRUE(c.b.Same(0, c.a, 0, 5000));
  EXPECT_EQ(std::ranges::count(c.world.log, Opcode::kWriteFirst,
                               [](const Sent& sent) { return sent.header.opcode; }),
            1);
}

TEST(RnrTest, AnEmptySrqIsNotReadyEither) {
  Connection c({.rnr_retry = 1, .use_srq = true});
  c.b.Receive(1, {c.b.Piece(0, 10)});
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
  c.a.Post({.id = 2, .local = {c.a.Piece(0, 10)}});
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST(RnrTest, ALostNakIsAskedForAgain) {
  Connection c({.timeout = 8, .min_rnr_timer = 1});
  c.world.lose = [count = 0](const Sent& sent) mutable { return sent.from == 1 && count++ == 0; };
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
  c.world.Run(500 * kMicrosecond);
  c.b.Receive(1, {c.b.Piece(0, 10)});
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().size(), 1U);
  EXPECT_EQ(Times(c.world).size(), 2U);
  EXPECT_EQ(c.a.side.engine.counters().local_ack_timeout_err, 1U);
}

TEST(RnrTest, ARepeatedNakDoesNotCountTwice) {
  Connection c({.rnr_retry = 1, .min_rnr_timer = 14});
  c.world.channel.doubled_per_mille = 1000;
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
  c.world.Run(100 * kMicrosecond);
  EXPECT_EQ(c.a.state(), IBV_QPS_RTS);
  c.b.Receive(1, {c.b.Piece(0, 10)});
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(c.b.PollReceive().size(), 1U);
}

// As rxe does: an RNR NAK for the first packet of a message, a sequence NAK for the second.
TEST(RnrTest, ASequenceNakBehindEachRnrNakUsesNoRetries) {
  for (const bool after_wait : {false, true}) {
    Connection c({.retry_cnt = 2, .min_rnr_timer = 14});
    c.a.Post({.id = 1, .local = {c.a.Piece(0, 3000)}});
    const Header nak{.opcode = Opcode::kAck,
                     .dest_qpn = c.a.qp->qpn(),
                     .psn = 0xfffff0,
                     .syndrome = kNakSequence};
    c.world.Run(10 * kMicrosecond);
    for (int round = 0; round < 20; ++round) {
      if (after_wait) {
        c.world.Run(kRnrTimerNs[14]);
        while (c.world.OnTheWay(0) == 0) ASSERT_TRUE(c.world.Step());
      }
      ASSERT_TRUE(c.world.Deliver(c.a.side, c.a.side.peer_path(), nak, {}));
      c.world.Run(kRnrTimerNs[14] + 4 * kMicrosecond);
      ASSERT_EQ(c.a.state(), IBV_QPS_RTS) << "round " << round;
    }
    c.b.Receive(1, {c.b.Piece(0, 3000)});
    c.world.Run();
    const auto done = c.a.PollSend();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(c.b.PollReceive().size(), 1U);
  }
}

}  // namespace
}  // namespace verbscope::soft::testing
