// Packets that are lost, late or doubled: who notices, what is sent again, and when it is given up.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"
#include "transports/soft/engine/rc_timers.h"

namespace verbscope::soft::testing {
namespace {

std::vector<Sent> SentBy(const World& world, int from) {
  std::vector<Sent> sent;
  std::ranges::copy_if(world.log, std::back_inserter(sent),
                       [from](const Sent& packet) { return packet.from == from; });
  return sent;
}

// Loses the packets of one direction with these numbers (0 is the first).
auto LoseNumbers(int from, std::vector<int> numbers) {
  return [from, numbers, count = 0](const Sent& sent) mutable {
    if (sent.from != from) return false;
    return std::ranges::count(numbers, count++) > 0;
  };
}

Work WriteOf(Connection& c, size_t bytes, uint64_t id = 1) {
  return {.id = id,
          .opcode = IBV_WR_RDMA_WRITE,
          .local = {c.a.Piece(0, bytes)},
          .remote = c.b.Address(0),
          .rkey = c.b.key};
}

Work ReadOf(Connection& c, size_t bytes, uint64_t id = 1) {
  Work work = WriteOf(c, bytes, id);
  work.opcode = IBV_WR_RDMA_READ;
  return work;
}

void ExpectSuccess(Connection& c, size_t count = 1) {
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), count);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

TEST(RetryTest, SilenceIsAskedAgainRetryCountTimes) {
  for (uint8_t retries = 0; retries <= 7; ++retries) {
    Connection c({.timeout = 14, .retry_cnt = retries});
    c.world.lose = [](const Sent&) { return true; };
    c.a.Post(WriteOf(c, 10));
    c.world.Run();
    const auto sent = SentBy(c.world, 0);
    ASSERT_EQ(sent.size(), retries + 1U);
    for (size_t i = 0; i < sent.size(); ++i) {
      EXPECT_EQ(sent[i].header.psn, 0xfffff0U);
      EXPECT_EQ(sent[i].time_ns - sent[0].time_ns, i * AckTimeoutNs(14));
    }
    EXPECT_EQ(c.world.now_ns - sent[0].time_ns, sent.size() * AckTimeoutNs(14));
    const auto done = c.a.PollSend();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(c.a.state(), IBV_QPS_ERR);
    EXPECT_EQ(c.a.side.engine.counters().retry_exceeded_err, 1U);
  }
}

TEST(RetryTest, SevenIsForEverWithRxeOnly) {
  Connection c({.profile = Profile::kRxe61, .timeout = 8, .retry_cnt = 7});
  bool lost = true;
  c.world.lose = [&lost](const Sent&) { return lost; };
  c.a.Post(WriteOf(c, 10));
  c.world.Run(kSecond);
  EXPECT_GT(SentBy(c.world, 0).size(), 900U);
  EXPECT_TRUE(c.a.PollSend().empty());
  lost = false;
  c.world.Run();
  ExpectSuccess(c);
}

TEST(RetryTest, TimeoutZeroWaitsForEver) {
  Connection c({.timeout = 0});
  c.world.lose = [](const Sent&) { return true; };
  c.a.Post(WriteOf(c, 10));
  c.world.Run();
  EXPECT_EQ(SentBy(c.world, 0).size(), 1U);
  EXPECT_EQ(c.a.state(), IBV_QPS_RTS);
}

TEST(RetryTest, AWrongQpNumberIsSilence) {
  Connection c({.retry_cnt = 1});
  c.b.Modify(IBV_QPS_RESET);
  c.a.Post(WriteOf(c, 10));
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(SentBy(c.world, 1).empty());
}

TEST(RetryTest, RetriesStartAgainAfterProgress) {
  Connection c({.mtu = IBV_MTU_256, .retry_cnt = 2});
  // Every message needs its two repetitions.
  c.world.lose = [count = 0](const Sent& sent) mutable {
    return sent.from == 0 && count++ % 3 != 2;
  };
  for (uint64_t i = 0; i < 8; ++i) {
    c.a.Post(WriteOf(c, 100, i));
    c.world.Run();
  }
  ExpectSuccess(c, 8);
  EXPECT_EQ(c.a.side.engine.counters().local_ack_timeout_err, 16U);
}

TEST(RetryTest, AGapIsNakedOnceAndClosedFromThere) {
  Connection c({.mtu = IBV_MTU_256, .timeout = 14});
  c.a.Fill(3);
  c.world.lose = LoseNumbers(0, {2});
  c.a.Post(WriteOf(c, 2560));
  c.world.Run();
  ExpectSuccess(c);
  EXPECT_TRUE(c.b.Same(0, c.a, 0, 2560));
  const auto answers = SentBy(c.world, 1);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].header.syndrome, kNakSequence);
  EXPECT_EQ(answers[0].header.psn, 0xfffff2U);
  EXPECT_EQ(answers[1].header.syndrome, kSyndromeAck);
  EXPECT_EQ(answers[1].header.psn, 0xfffff9U);
  EXPECT_EQ(answers[1].header.msn, 1U);
  EXPECT_EQ(SentBy(c.world, 0).size(), 18U);
  EXPECT_EQ(c.b.side.engine.counters().out_of_seq_request, 7U);
  EXPECT_EQ(c.a.side.engine.counters().rcvd_seq_err, 1U);
  EXPECT_EQ(c.a.side.engine.counters().local_ack_timeout_err, 0U);
}

TEST(RetryTest, ALostAckIsRepeatedAndTheWorkIsNot) {
  Connection c;
  c.b.Receive(1, {c.b.Piece(0, 10)});
  c.b.Receive(2, {c.b.Piece(0, 10)});
  c.world.lose = LoseNumbers(1, {0});
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
  c.world.Run();
  ExpectSuccess(c);
  EXPECT_EQ(c.b.PollReceive().size(), 1U);
  EXPECT_EQ(c.b.side.engine.counters().duplicate_request, 1U);
  const auto answers = SentBy(c.world, 1);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[1].header.msn, 1U) << "a duplicate does not count";
}

TEST(RetryTest, ADuplicateIsAnsweredWithTheNewestPsnUpToTheNextRead) {
  Connection c({.timeout = 14});
  for (uint64_t i = 0; i < 3; ++i) c.a.Post(WriteOf(c, 10, i));  // PSN f0 … f2
  c.a.Post(ReadOf(c, 10, 3));                                    // f3
  c.a.Post(WriteOf(c, 10, 4));                                   // f4
  c.a.Post(WriteOf(c, 10, 5));                                   // f5
  c.world.Run();
  ExpectSuccess(c, 6);
  const auto answer_to = [&c](uint32_t psn) {
    c.world.log.clear();
    Header header{.opcode = Opcode::kWriteOnly, .dest_qpn = c.b.qp->qpn(), .psn = psn};
    c.world.Deliver(c.b.side, 9, header, {});
    c.world.Serve();
    return c.world.log.size() == 1 ? c.world.log[0].header.psn : 0;
  };
  EXPECT_EQ(answer_to(0xfffff4), 0xfffff5U);
  EXPECT_EQ(answer_to(0xfffff0), 0xfffff0U) << "an ACK beyond the READ would deny its answer";
}

TEST(RetryTest, ADuplicateAtomicIsAnsweredFromMemoryOfIt) {
  Connection c;
  c.b.Word(0) = 10;
  c.world.lose = LoseNumbers(1, {0, 1});
  const Work add = {.id = 1,
                    .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                    .local = {c.a.Piece(64, 8)},
                    .remote = c.b.Address(0),
                    .rkey = c.b.key,
                    .swap_add = 5};
  c.a.Post(add);
  c.world.Run();
  ExpectSuccess(c);
  EXPECT_EQ(c.b.Word(0), 15U);
  EXPECT_EQ(c.a.Word(64), 10U);
  EXPECT_EQ(SentBy(c.world, 0).size(), 3U);
}

TEST(RetryTest, AReadGoesOnWhereItsAnswerStopped) {
  Connection c({.timeout = 14});
  c.b.Fill(6);
  c.world.lose = LoseNumbers(1, {2});
  c.a.Post(ReadOf(c, 5000));
  c.world.Run();
  ExpectSuccess(c);
  EXPECT_TRUE(c.a.Same(0, c.b, 0, 5000));
  const auto requests = SentBy(c.world, 0);
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[1].header.psn, 0xfffff2U);
  EXPECT_EQ(requests[1].header.address, c.b.Address(2048));
  EXPECT_EQ(requests[1].header.dma_length, 5000U - 2048U);
  // The responder's READ takes its PSNs once: the next request follows the whole answer.
  c.a.Post(WriteOf(c, 10, 2));
  c.world.Run();
  ExpectSuccess(c);
  EXPECT_EQ(SentBy(c.world, 0).back().header.psn, 0xfffff5U);
  EXPECT_EQ(c.a.side.engine.counters().local_ack_timeout_err, 0U) << "the hole is seen at once";
}

TEST(RetryTest, ARestOfAReadMayBeginWithFirstOrMiddle) {
  for (const Opcode opcode : {Opcode::kReadResponseFirst, Opcode::kReadResponseMiddle}) {
    Connection c({.timeout = 14});
    c.world.lose = [](const Sent& sent) { return sent.from == 1; };
    c.a.Post(ReadOf(c, 3000));
    Header header{.opcode = Opcode::kReadResponseFirst, .dest_qpn = c.a.qp->qpn(), .psn = 0xfffff0};
    const std::vector<std::byte> full(1024, std::byte{1});
    c.world.Deliver(c.a.side, 5, header, full);
    header.opcode = opcode;
    header.psn = 0xfffff1;
    c.world.Deliver(c.a.side, 5, header, full);
    header.opcode = Opcode::kReadResponseLast;
    header.psn = 0xfffff2;
    c.world.Deliver(c.a.side, 5, header, std::vector<std::byte>(3000 - 2048));
    ExpectSuccess(c);
  }
}

TEST(RetryTest, AnAckBeyondAReadDeniesItsAnswer) {
  Connection c({.timeout = 14});
  c.b.Fill(6);
  c.world.lose = [lost = false](const Sent& sent) mutable {
    return sent.header.opcode == Opcode::kReadResponseOnly && !std::exchange(lost, true);
  };
  c.a.Post(WriteOf(c, 10, 1));
  c.a.Post({.id = 2,
            .opcode = IBV_WR_RDMA_READ,
            .local = {c.a.Piece(100, 10)},
            .remote = c.b.Address(200),
            .rkey = c.b.key});
  c.a.Post(WriteOf(c, 10, 3));
  c.world.Run();
  ExpectSuccess(c, 3);
  EXPECT_TRUE(c.a.Same(100, c.b, 200, 10));
  const auto requests = SentBy(c.world, 0);
  ASSERT_EQ(requests.size(), 5U);  // the READ and what follows it, not what was in front
  EXPECT_EQ(requests[3].header.psn, 0xfffff1U);
  EXPECT_EQ(c.a.side.engine.counters().implied_nak_seq_err, 1U);
  EXPECT_EQ(c.a.side.engine.counters().local_ack_timeout_err, 0U);
}

TEST(RetryTest, ManyAcksBeyondAHoleAreOneDenial) {
  Connection c({.timeout = 14, .retry_cnt = 1});
  c.world.lose = LoseNumbers(1, {0});
  c.a.Post(ReadOf(c, 10, 1));
  c.world.Serve();
  for (uint64_t i = 2; i < 8; ++i) {
    c.a.Post(WriteOf(c, 10, i));
    c.world.now_ns += 100;
  }
  c.world.Run();
  ExpectSuccess(c, 7);
  EXPECT_EQ(c.a.side.engine.counters().completer_retry_err, 1U);
}

TEST(RetryTest, AReadAnswerAcknowledgesWhatIsBeforeIt) {
  Connection c({.timeout = 14});
  c.world.lose = [](const Sent& sent) { return sent.header.opcode == Opcode::kAck; };
  c.a.Post(WriteOf(c, 10, 1));
  c.a.Post(ReadOf(c, 10, 2));
  c.world.Run(kMillisecond);
  ExpectSuccess(c, 2);
}

// Packets that come together are answered together: the READ's answer stands for the ACK of the
// WRITE in front of it, and the ACK of the WRITE behind comes last.
TEST(RetryTest, NoAckFollowsAnAnswerThatImpliesIt) {
  for (const bool write_behind : {false, true}) {
    Connection c;
    Header header;
    header.opcode = Opcode::kWriteOnly;
    header.dest_qpn = c.b.qp->qpn();
    header.psn = 0xfffff0;
    header.ack_request = true;
    header.address = c.b.Address(0);
    header.rkey = c.b.key;
    header.dma_length = 8;
    const std::vector<std::byte> data(8);
    ASSERT_TRUE(c.world.Deliver(c.b.side, c.b.side.peer_path(), header, data));
    header.opcode = Opcode::kReadRequest;
    header.psn = 0xfffff1;
    ASSERT_TRUE(c.world.Deliver(c.b.side, c.b.side.peer_path(), header, {}));
    header.opcode = Opcode::kWriteOnly;
    header.psn = 0xfffff2;
    if (write_behind) {
      ASSERT_TRUE(c.world.Deliver(c.b.side, c.b.side.peer_path(), header, data));
    }
    c.world.Serve();
    const auto answers = SentBy(c.world, 1);
    ASSERT_EQ(answers.size(), write_behind ? 2U : 1U);
    EXPECT_EQ(answers[0].header.opcode, Opcode::kReadResponseOnly);
    EXPECT_EQ(answers.back().header.psn, write_behind ? 0xfffff2U : 0xfffff1U);
  }
}

TEST(RetryTest, AnAnswerThatIsStillOwedIsNotOwedTwice) {
  Connection c({.timeout = 0});
  c.b.Fill(6);
  c.world.channel.room = 3;
  c.a.Post(ReadOf(c, 10 * 1024, 1));
  c.a.Post(ReadOf(c, 10, 2));
  while (c.world.OnTheWay(0) > 0) c.world.Step();
  EXPECT_EQ(SentBy(c.world, 1).size(), 3U) << "the link is full";
  // The READs again, as a network doubles them or a requester repeats them: from the beginning,
  // from where the answer has got to, and from a place it has not reached.
  Header header{.opcode = Opcode::kReadRequest, .dest_qpn = c.b.qp->qpn()};
  header.rkey = c.b.key;
  for (const uint32_t packet : {10U, 8U, 3U, 1U, 10U}) {
    header.psn = (0xfffff0 + packet) & 0xffffff;
    header.address = c.b.Address(packet == 10 ? 0 : packet * 1024);
    header.dma_length = packet == 10 ? 10 : (10 - packet) * 1024;
    for (int i = 0; i < 40; ++i) c.world.Deliver(c.b.side, 9, header, {});
  }
  c.world.Run();
  ExpectSuccess(c, 2);
  EXPECT_TRUE(c.a.Same(10, c.b, 10, 10 * 1024 - 10));
  EXPECT_EQ(SentBy(c.world, 1).size(), 3U + 9U + 1U) << "on again from the second packet";
}

TEST(RetryTest, ANakThatWaitsForRoomAsksOnlyForWhatIsStillMissing) {
  Connection c({.mtu = IBV_MTU_256, .timeout = 14});
  c.world.lose = LoseNumbers(0, {0, 1, 2, 3});
  c.a.Post(WriteOf(c, 1024));
  // By hand: 1 and 0 in the wrong order, while the way back is closed.
  const auto deliver = [&c](uint32_t psn, Opcode opcode) {
    Header header{.opcode = opcode, .dest_qpn = c.b.qp->qpn(), .psn = psn};
    header.address = c.b.Address(0);
    header.rkey = c.b.key;
    header.dma_length = 1024;
    c.world.Deliver(c.b.side, 9, header, std::vector<std::byte>(256));
  };
  deliver(0xfffff1, Opcode::kWriteMiddle);
  deliver(0xfffff0, Opcode::kWriteFirst);
  c.world.Run();
  ExpectSuccess(c);
  const auto answers = SentBy(c.world, 1);
  ASSERT_GE(answers.size(), 1U);
  EXPECT_EQ(answers[0].header.syndrome, kNakSequence);
  EXPECT_EQ(answers[0].header.psn, 0xfffff1U);
  EXPECT_EQ(SentBy(c.world, 0).size(), 4U + 3U);
}

TEST(RetryTest, ASmallWindowIsNoDeadEnd) {
  for (const uint32_t window : {1, 2, 7}) {
    Connection c({.window_packets = window, .mtu = IBV_MTU_256});
    c.a.Fill(2);
    c.a.Post(WriteOf(c, 5000));
    c.world.Run();
    ExpectSuccess(c);
    EXPECT_TRUE(c.b.Same(0, c.a, 0, 5000));
    EXPECT_EQ(SentBy(c.world, 0).size(), 20U) << "nothing is sent twice";
  }
}

TEST(RetryTest, WhileSomethingComesBackTheTimerStartsAgain) {
  // An answer of 60 packets, each just before the timeout.
  Connection c({.channel = {.latency_ns = 100, .room = 1}, .timeout = 1});
  c.b.Fill(1);
  c.world.channel.latency_ns = AckTimeoutNs(1) - 200;
  c.a.Post(ReadOf(c, 60 * 1024));
  c.world.Run();
  ExpectSuccess(c);
  EXPECT_TRUE(c.a.Same(0, c.b, 0, 60 * 1024));
}

}  // namespace
}  // namespace verbscope::soft::testing
