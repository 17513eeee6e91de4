// The states of a QP: which transition needs what, what may be posted in each, and the way back.
#include <gtest/gtest.h>

#include <cerrno>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

const std::array<ibv_qp_state, 5> kStates = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
                                             IBV_QPS_SQD};

// A connection whose b is in `state`.
void Bring(Connection& c, ibv_qp_state state) {
  c.b.Modify(IBV_QPS_RESET);
  if (state == IBV_QPS_RESET) return;
  c.b.Connect(c.a, {}, state == IBV_QPS_SQD ? IBV_QPS_RTS : state);
  if (state == IBV_QPS_SQD) {
    ASSERT_EQ(c.b.Modify(IBV_QPS_SQD), 0);
  }
  ASSERT_EQ(c.b.state(), state);
}

int ModifyWith(Connection& c, ibv_qp_state to, int mask) {
  return c.b.qp->Modify(AttributesFor(to, {}, c.a.qp->qpn()), mask);
}

TEST(QueuePairTest, EachRequiredAttributeIsRequired) {
  Connection c;
  const ibv_qp_state before[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR};
  for (const ibv_qp_state from : before) {
    Bring(c, from);
    const auto to = static_cast<ibv_qp_state>(from + 1);
    const int full = FullMask(to);
    for (int bit = 1; bit <= full; bit <<= 1) {
      if ((full & bit) == 0 || bit == IBV_QP_STATE) continue;
      EXPECT_EQ(ModifyWith(c, to, full & ~bit), EINVAL) << "state " << to << " without " << bit;
      EXPECT_EQ(c.b.state(), from);
    }
    EXPECT_EQ(ModifyWith(c, to, full | IBV_QP_CAP), EINVAL) << "an attribute too many";
    EXPECT_EQ(ModifyWith(c, to, full), 0);
    EXPECT_EQ(c.b.state(), to);
  }
}

TEST(QueuePairTest, OnlyTheTransitionsOfTheSpecificationExist) {
  // Rows: from RESET … SQD; columns: to RESET, INIT, RTR, RTS, SQD.
  const bool exists[5][5] = {{true, true, false, false, false},
                             {true, true, true, false, false},
                             {true, false, false, true, false},
                             {true, false, false, true, true},
                             {true, false, false, true, true}};
  Connection c;
  for (size_t from = 0; from < 5; ++from) {
    for (size_t to = 0; to < 5; ++to) {
      Bring(c, kStates[from]);
      const int mask = from == to ? IBV_QP_STATE : FullMask(kStates[to]);
      const bool same = kStates[from] == IBV_QPS_SQD && kStates[to] == IBV_QPS_RTS;
      const int result = ModifyWith(c, kStates[to], same ? IBV_QP_STATE : mask);
      EXPECT_EQ(result, exists[from][to] ? 0 : EINVAL) << from << " to " << to;
      EXPECT_EQ(c.b.state(), kStates[exists[from][to] ? to : from]);
    }
    Bring(c, kStates[from]);
    EXPECT_EQ(c.b.Modify(IBV_QPS_ERR), 0);
    EXPECT_EQ(c.b.state(), IBV_QPS_ERR);
    EXPECT_EQ(ModifyWith(c, IBV_QPS_RTS, FullMask(IBV_QPS_RTS)), EINVAL);
    EXPECT_EQ(ModifyWith(c, IBV_QPS_INIT, FullMask(IBV_QPS_INIT)), EINVAL);
  }
}

TEST(QueuePairTest, ValuesOutOfRangeAreRefused) {
  Connection c;
  const auto refused = [&c](ibv_qp_state to, auto change) {
    Bring(c, static_cast<ibv_qp_state>(to - 1));
    ibv_qp_attr attributes = AttributesFor(to, {}, c.a.qp->qpn());
    change(attributes);
    return c.b.qp->Modify(attributes, FullMask(to)) == EINVAL;
  };
  EXPECT_TRUE(refused(IBV_QPS_INIT, [](auto& a) { a.pkey_index = 1; }));
  EXPECT_TRUE(refused(IBV_QPS_INIT, [](auto& a) { a.qp_access_flags = IBV_ACCESS_MW_BIND; }));
  EXPECT_TRUE(refused(IBV_QPS_RTR, [](auto& a) { a.path_mtu = static_cast<ibv_mtu>(0); }));
  EXPECT_TRUE(refused(IBV_QPS_RTR, [](auto& a) { a.path_mtu = static_cast<ibv_mtu>(6); }));
  EXPECT_TRUE(refused(IBV_QPS_RTR, [](auto& a) { a.dest_qp_num = 1 << 24; }));
  EXPECT_TRUE(refused(IBV_QPS_RTR, [](auto& a) { a.min_rnr_timer = 32; }));
  EXPECT_TRUE(refused(IBV_QPS_RTS, [](auto& a) { a.timeout = 32; }));
  EXPECT_TRUE(refused(IBV_QPS_RTS, [](auto& a) { a.retry_cnt = 8; }));
  EXPECT_TRUE(refused(IBV_QPS_RTS, [](auto& a) { a.rnr_retry = 8; }));
  ibv_qp_attr attributes = {};
  attributes.cur_qp_state = IBV_QPS_SQD;
  EXPECT_EQ(c.a.qp->Modify(attributes, IBV_QP_CUR_STATE), EINVAL);
  attributes.cur_qp_state = IBV_QPS_RTS;
  EXPECT_EQ(c.a.qp->Modify(attributes, IBV_QP_CUR_STATE), 0);
}

TEST(QueuePairTest, PostingDependsOnTheState) {
  struct {
    ibv_qp_state state;
    int send;
    int receive;
  } const rules[] = {{IBV_QPS_RESET, EINVAL, EINVAL},
                     {IBV_QPS_INIT, EINVAL, 0},
                     {IBV_QPS_RTR, EINVAL, 0},
                     {IBV_QPS_RTS, 0, 0},
                     {IBV_QPS_SQD, 0, 0}};
  Connection c;
  for (const auto& rule : rules) {
    Bring(c, rule.state);
    EXPECT_EQ(c.b.Post({.id = 1}), rule.send) << rule.state;
    EXPECT_EQ(c.b.Receive(2, {}), rule.receive) << rule.state;
  }
  c.b.Modify(IBV_QPS_ERR);
  c.b.PollSend();
  c.b.PollReceive();
  EXPECT_EQ(c.b.Post({.id = 3, .flags = 0}), 0);
  EXPECT_EQ(c.b.Receive(4, {}), 0);
  const auto sent = c.b.PollSend();
  const auto received = c.b.PollReceive();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(sent[0].wr_id, 3U);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(received[0].wr_id, 4U);
}

TEST(QueuePairTest, ReceivesPostedInInitServeTheConnection) {
  Connection c;
  c.b.Modify(IBV_QPS_RESET);
  c.b.Connect(c.a, {}, IBV_QPS_INIT);
  ASSERT_EQ(c.b.Receive(1, {c.b.Piece(0, 10)}), 0);
  // A responder in RTR receives; the first packet is the news that the peer is there.
  c.b.Modify(IBV_QPS_INIT);
  ASSERT_EQ(ModifyWith(c, IBV_QPS_RTR, FullMask(IBV_QPS_RTR)), 0);
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
  c.a.Post({.id = 2, .opcode = IBV_WR_RDMA_WRITE});
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().size(), 2U);
  EXPECT_EQ(c.b.PollReceive().size(), 1U);
  EXPECT_EQ(c.b.side.Count(IBV_EVENT_COMM_EST), 1U);
}

TEST(QueuePairTest, ErrorThenResetThenReuse) {
  Connection c;
  c.b.Receive(1, {c.b.Piece(0, 10)});
  for (int round = 0; round < 3; ++round) {
    c.a.Post({.id = 1, .opcode = IBV_WR_RDMA_WRITE, .local = {c.a.Piece(0, 1)}, .rkey = 0x1234});
    c.a.Post({.id = 2, .local = {c.a.Piece(0, 10)}});
    c.world.Run();
    EXPECT_EQ(c.a.state(), IBV_QPS_ERR);
    EXPECT_EQ(c.b.state(), IBV_QPS_ERR);
    EXPECT_EQ(c.a.send_cq.size(), 2U);
    c.a.Modify(IBV_QPS_RESET);
    c.b.Modify(IBV_QPS_RESET);
    EXPECT_EQ(c.a.send_cq.size(), 0U) << "completions of a QP go when it is reset";
    EXPECT_EQ(c.b.recv_cq.size(), 0U);
    c.a.Connect(c.b, {});
    c.b.Connect(c.a, {});
    c.b.Receive(7, {c.b.Piece(0, 10)});
    c.a.Post({.id = 3, .local = {c.a.Piece(0, 10)}});
    c.world.Run();
    const auto sent = c.a.PollSend();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].wr_id, 3U);
    EXPECT_EQ(sent[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(c.b.PollReceive().size(), 1U);
  }
}

TEST(QueuePairTest, QueryTellsWhatWasSet) {
  Connection c;
  ibv_qp_attr attributes;
  ibv_qp_init_attr init;
  c.a.Post({.id = 1, .opcode = IBV_WR_RDMA_WRITE});
  c.world.Run();
  c.a.qp->Query(attributes, init);
  EXPECT_EQ(attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(attributes.path_mtu, IBV_MTU_1024);
  EXPECT_EQ(attributes.dest_qp_num, c.b.qp->qpn());
  EXPECT_EQ(attributes.sq_psn, 0xfffff1U);
  EXPECT_EQ(attributes.timeout, 8);
  EXPECT_EQ(attributes.max_rd_atomic, 4);
  EXPECT_EQ(init.cap.max_send_wr, 64U);
  c.b.qp->Query(attributes, init);
  EXPECT_EQ(attributes.rq_psn, 0xfffff1U);
}

class SqdTest : public ::testing::Test {
 protected:
  // RTS to SQD, with the event asked for.
  void Drain(Connection& c) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_SQD;
    attributes.en_sqd_async_notify = 1;
    ASSERT_EQ(c.a.qp->Modify(attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
  }
};

TEST_F(SqdTest, AnIdleQueueIsDrainedAtOnce) {
  Connection c;
  Drain(c);
  EXPECT_EQ(c.a.side.Count(IBV_EVENT_SQ_DRAINED), 1U);
}

TEST_F(SqdTest, WhatHasBegunIsFinishedEvenIfItIsLost) {
  for (const bool lossy : {false, true}) {
    Connection c;
    c.world.lose = [count = 0, lossy](const Sent&) mutable { return lossy && count++ < 3; };
    c.a.Post({.id = 1,
              .opcode = IBV_WR_RDMA_WRITE,
              .local = {c.a.Piece(0, 5000)},
              .remote = c.b.Address(0),
              .rkey = c.b.key});
    Drain(c);
    c.a.Post({.id = 2, .opcode = IBV_WR_RDMA_WRITE});
    EXPECT_EQ(c.a.side.Count(IBV_EVENT_SQ_DRAINED), 0U);
    c.world.Run();
    auto done = c.a.PollSend();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].wr_id, 1U);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_EQ(c.a.side.Count(IBV_EVENT_SQ_DRAINED), 1U);
    EXPECT_EQ(c.a.Modify(IBV_QPS_RTS), 0);
    c.world.Run();
    done = c.a.PollSend();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(done[0].wr_id, 2U);
    EXPECT_EQ(c.a.side.Count(IBV_EVENT_SQ_DRAINED), 1U);
  }
}

TEST_F(SqdTest, StillReceives) {
  Connection c;
  c.a.Receive(1, {c.a.Piece(0, 10)});
  Drain(c);
  c.b.Post({.id = 1, .local = {c.b.Piece(0, 10)}});
  c.world.Run();
  EXPECT_EQ(c.a.PollReceive().size(), 1U);
  EXPECT_EQ(c.b.PollSend().size(), 1U);
}

}  // namespace
}  // namespace verbscope::soft::testing
