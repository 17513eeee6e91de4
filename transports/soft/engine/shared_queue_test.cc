// CQs and SRQs that several QPs share, and receive queues alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

ibv_recv_wr Request(uint64_t id) {
  ibv_recv_wr wr = {};
  wr.wr_id = id;
  return wr;
}

TEST(ReceiveQueueTest, ResizeKeepsOrderAndSlotsInUse) {
  ReceiveQueue queue(4, 1);
  ReceiveRequest taken;
  for (uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(queue.Post(Request(i)), 0);
  EXPECT_EQ(queue.Post(Request(5)), ENOMEM);
  queue.Pop(taken);
  queue.Pop(taken);
  ++*queue.released();  // one polled, one not yet
  EXPECT_FALSE(queue.Resize(2));
  EXPECT_TRUE(queue.Resize(5));
  EXPECT_EQ(queue.Post(Request(5)), 0);
  EXPECT_EQ(queue.Post(Request(6)), 0);
  EXPECT_EQ(queue.Post(Request(7)), ENOMEM);
  ++*queue.released();
  EXPECT_EQ(queue.Post(Request(7)), 0);
  for (uint64_t i = 3; i <= 7; ++i) {
    ASSERT_FALSE(queue.empty());
    queue.Pop(taken);
    EXPECT_EQ(taken.wr_id, i);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(SrqTest, TheLimitEventComesOnceWhenItIsCrossed) {
  Connection c({.use_srq = true});
  for (uint64_t i = 0; i < 5; ++i) c.b.Receive(i, {});
  c.b.srq->SetLimit(3);
  const std::vector<size_t> events = {0, 0, 1, 1};
  for (const size_t expected : events) {
    c.a.Post({.id = 1});
    c.world.Run();
    EXPECT_EQ(c.b.side.srq_events.size(), expected);
  }
  EXPECT_EQ(c.b.srq->limit(), 0U) << "one-shot";
}

// Two connections whose b ends draw from one SRQ and report to one CQ.
class SharedTest : public ::testing::Test {
 protected:
  SharedTest() {
    second_a_.Connect(second_b_, options_);
    QpOptions options;
    for (Endpoint* b : {&c_.b, &second_b_}) {
      const Endpoint& a = b == &c_.b ? c_.a : second_a_;
      b->side.engine.DestroyQp(*b->qp);
      options.qpn = b->side.engine.FreeQpn().value();
      options.pd = 1;
      options.send_cq = options.recv_cq = &c_.b.recv_cq;
      options.srq = c_.b.srq.get();
      options.cap = options_.cap;
      b->qp = &b->side.engine.CreateQp(options);
      b->Connect(a, options_);
    }
    for (Endpoint* a : {&c_.a, &second_a_}) {
      a->Modify(IBV_QPS_RESET);
      a->Connect(a == &c_.a ? c_.b : second_b_, options_);
    }
  }

  const ConnectOptions options_ = {.use_srq = true, .cq_entries = 8};
  Connection c_{options_};
  Endpoint second_a_{c_.world.a, options_};
  Endpoint second_b_{c_.world.b, options_};
};

TEST_F(SharedTest, ReceivesGoToWhoeverComesFirst) {
  for (uint64_t i = 0; i < 4; ++i) c_.b.Receive(i, {c_.b.Piece(0, 10)});
  c_.a.Post({.id = 1, .local = {c_.a.Piece(0, 1)}});
  second_a_.Post({.id = 1, .local = {second_a_.Piece(0, 2)}});
  second_a_.Post({.id = 2, .local = {second_a_.Piece(0, 3)}});
  c_.world.Run();
  const auto received = c_.b.PollReceive();
  ASSERT_EQ(received.size(), 3U);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].byte_len, i + 1);
    EXPECT_EQ(received[i].qp_num, (i == 0 ? c_.b : second_b_).qp->qpn());
  }
}

TEST_F(SharedTest, AnErrorOfOneQpLeavesTheSrqToTheOther) {
  for (uint64_t i = 0; i < 3; ++i) c_.b.Receive(i, {});
  c_.a.Post({.id = 1, .local = {c_.a.Piece(0, 5)}});  // does not fit
  c_.world.Run();
  EXPECT_EQ(c_.b.state(), IBV_QPS_ERR);
  EXPECT_EQ(c_.b.side.Count(IBV_EVENT_QP_LAST_WQE_REACHED), 1U);
  EXPECT_EQ(c_.b.srq->size(), 2U) << "not flushed";
  second_a_.Post({.id = 2});
  c_.world.Run();
  const auto received = c_.b.PollReceive();
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(received[0].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(received[1].status, IBV_WC_SUCCESS);
}

TEST_F(SharedTest, AResetGivesSlotsBackToTheSrq) {
  const uint32_t slots = options_.cap.max_recv_wr;
  for (uint64_t i = 0; i < slots; ++i) ASSERT_EQ(c_.b.Receive(i, {c_.b.Piece(0, 5000)}), 0);
  ASSERT_EQ(c_.b.Receive(1, {}), ENOMEM);
  // One completion not polled, one message under way.
  c_.world.lose = [](const Sent& sent) { return sent.header.opcode == Opcode::kSendLast; };
  c_.a.Post({.id = 1});
  c_.a.Post({.id = 2, .local = {c_.a.Piece(0, 5000)}});
  c_.world.Run(100 * kMicrosecond);
  EXPECT_EQ(c_.b.srq->size(), slots - 2);
  c_.b.Modify(IBV_QPS_RESET);
  EXPECT_EQ(c_.b.Receive(1, {}), 0);
  EXPECT_EQ(c_.b.Receive(1, {}), 0);
  EXPECT_EQ(c_.b.Receive(1, {}), ENOMEM);
}

TEST_F(SharedTest, AnOverrunEndsAllQpsOfTheCq) {
  for (uint64_t i = 0; i < 12; ++i) c_.b.Receive(i, {});
  for (uint64_t i = 0; i < 6; ++i) {
    c_.a.Post({.id = i});
    second_a_.Post({.id = i});
  }
  c_.world.Run();
  EXPECT_EQ(c_.b.side.cq_errors.size(), 1U);
  EXPECT_EQ(c_.b.state(), IBV_QPS_ERR);
  EXPECT_EQ(second_b_.state(), IBV_QPS_ERR);
  EXPECT_EQ(c_.b.side.Count(IBV_EVENT_QP_FATAL), 2U);
  EXPECT_EQ(c_.b.side.engine.counters().cq_overrun, 1U);
  EXPECT_EQ(c_.b.PollReceive().size(), 8U) << "what was there stays";
}

TEST_F(SharedTest, DestroyingAQpTakesItsCompletions) {
  for (uint64_t i = 0; i < 4; ++i) c_.b.Receive(i, {});
  c_.a.Post({.id = 1});
  second_a_.Post({.id = 1});
  c_.world.Run();
  const uint32_t qpn = c_.b.qp->qpn();
  c_.b.side.engine.DestroyQp(*c_.b.qp);
  EXPECT_EQ(c_.b.side.engine.Find(qpn), nullptr);
  const auto received = c_.b.PollReceive();
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].qp_num, second_b_.qp->qpn());
  c_.world.Run();
}

TEST(EventTest, CompletionsRaiseWhatTheirArmingAsksFor) {
  Connection c;
  for (uint64_t i = 0; i < 4; ++i) c.b.Receive(i, {});
  c.b.recv_cq.Arm(/*solicited_only=*/true);
  c.a.Post({.id = 1});
  c.world.Run();
  EXPECT_TRUE(c.b.side.completion_events.empty());
  c.a.Post({.id = 2, .flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED});
  c.a.Post({.id = 3, .flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED});
  c.world.Run();
  ASSERT_EQ(c.b.side.completion_events.size(), 1U);
  EXPECT_EQ(c.b.side.completion_events[0], &c.b.recv_cq);
  c.a.send_cq.Arm(/*solicited_only=*/false);
  c.a.Post({.id = 4, .opcode = IBV_WR_RDMA_WRITE});
  c.world.Run();
  EXPECT_EQ(c.a.side.completion_events.size(), 1U);
}

}  // namespace
}  // namespace verbscope::soft::testing
