// What messages do when something is wrong: who sees which status, and what is flushed.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "transports/fake/fake_test_util.h"

namespace verbscope {
namespace {

TEST(FakeErrors, TooSmallReceiveBreaksBothSidesAndFlushesInOrder) {
  FakePair pair;
  ASSERT_EQ(Recv(pair.b, 0, 4, 1), 0);
  ASSERT_EQ(Recv(pair.b, 0, 4, 2), 0);
  ASSERT_EQ(Recv(pair.a, 0, 4, 3), 0);
  ASSERT_EQ(Send(pair.a, 5, 10, /*flags=*/0), 0);  // unsignalled, yet it completes
  EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_REM_INV_REQ_ERR});
  EXPECT_EQ(DrainStatuses(pair.a.recv_cq), Statuses{IBV_WC_WR_FLUSH_ERR});
  const auto at_b = Drain(pair.b.recv_cq);
  ASSERT_EQ(at_b.size(), 2U);
  EXPECT_EQ(at_b[0].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(at_b[0].wr_id, 1U);
  EXPECT_EQ(at_b[1].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(at_b[1].wr_id, 2U);
  for (const FakeEnd* end : {&pair.a, &pair.b}) {
    EXPECT_EQ(Must(end->device->QueryQpState(end->qp.get())), IBV_QPS_ERR);
    ASSERT_EQ(Send(*end, 1), 0);  // posting in ERR flushes
    EXPECT_EQ(DrainStatuses(end->send_cq), Statuses{IBV_WC_WR_FLUSH_ERR});
    ASSERT_EQ(Recv(*end, 0, 1), 0);
    EXPECT_EQ(DrainStatuses(end->recv_cq), Statuses{IBV_WC_WR_FLUSH_ERR});
  }
}

TEST(FakeErrors, ErrorCompletionsCarryMisleadingInvalidFields) {
  FakePair pair;
  ASSERT_EQ(Recv(pair.b, 0, 4, 1), 0);
  ASSERT_EQ(Send(pair.a, 5, 10), 0);
  const ibv_wc sent = Drain(pair.a.send_cq).at(0);
  EXPECT_EQ(sent.wr_id, 10U);
  EXPECT_EQ(sent.qp_num, pair.a.qp->qp_num);
  EXPECT_NE(sent.vendor_err, 0U);
  EXPECT_EQ(sent.opcode, IBV_WC_RECV);
  const ibv_wc received = Drain(pair.b.recv_cq).at(0);
  EXPECT_EQ(received.opcode, IBV_WC_SEND);
  EXPECT_GT(received.byte_len, 4096U);
}

TEST(FakeErrors, BadKeysAndRangesFailOnTheRightSide) {
  {
    FakePair pair;
    ibv_sge sge = Sge(pair.a, 4090, 8);  // beyond the region
    ASSERT_EQ(Post(pair.a, SendOf(&sge)), 0);
    EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_LOC_PROT_ERR});
    EXPECT_EQ(pair.fabric->Look(pair.b.qp.get()).state, IBV_QPS_RTS);
  }
  {
    FakePair pair;
    ibv_sge sge = Sge(pair.a, 0, 8);
    ASSERT_EQ(Post(pair.a, RdmaOf(IBV_WR_RDMA_WRITE, &sge, pair.b, 4090)), 0);
    EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_REM_ACCESS_ERR});
    EXPECT_EQ(pair.fabric->Look(pair.b.qp.get()).state, IBV_QPS_ERR);
    const auto event = Must(pair.b.device->NextAsyncEvent(Deadline::After({})));
    ASSERT_TRUE(event);
    EXPECT_EQ(event->text, "QP_ACCESS_ERR on QP " + std::to_string(pair.b.qp->qp_num));
  }
  {
    FakePair pair({.access = 0});
    ASSERT_EQ(Recv(pair.b, 0, 8), 0);
    ASSERT_EQ(Send(pair.a, 1), 0);
    EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_REM_OP_ERR});
    EXPECT_EQ(DrainStatuses(pair.b.recv_cq), Statuses{IBV_WC_LOC_PROT_ERR});
  }
}

TEST(FakeErrors, RnrExhaustsOnlyWhenAskedToAndRetriesAreFinite) {
  FakePair patient({.rnr_retry = 7});
  patient.fabric->set_rnr_exhausts(true);
  ASSERT_EQ(Send(patient.a, 1), 0);
  EXPECT_EQ(patient.fabric->Look(patient.a.qp.get()).sends_waiting, 1U);
  FakePair hasty({.rnr_retry = 3});
  hasty.fabric->set_rnr_exhausts(true);
  ASSERT_EQ(Send(hasty.a, 1), 0);
  EXPECT_EQ(DrainStatuses(hasty.a.send_cq), Statuses{IBV_WC_RNR_RETRY_EXC_ERR});
  EXPECT_EQ(hasty.fabric->Look(hasty.b.qp.get()).state, IBV_QPS_RTS);
}

TEST(FakeErrors, AWaitingSenderIsToldWhenItsPeerGoes) {
  FakePair pair;
  ASSERT_EQ(Send(pair.a, 1, 1), 0);
  ASSERT_EQ(Send(pair.a, 1, 2), 0);
  ASSERT_TRUE(pair.b.qp.Close());
  EXPECT_EQ(DrainStatuses(pair.a.send_cq), (Statuses{IBV_WC_RETRY_EXC_ERR, IBV_WC_WR_FLUSH_ERR}));
}

TEST(FakeErrors, APeerInErrorIsUnreachable) {
  FakePair pair;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  ASSERT_TRUE(pair.b.device->ModifyQp(pair.b.qp.get(), attributes, IBV_QP_STATE, "any to ERR"));
  ASSERT_EQ(Send(pair.a, 1), 0);
  EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_RETRY_EXC_ERR});
}

TEST(FakeErrors, EndsThatDoNotMatchAreUnreachable) {
  const std::pair<int, void (*)(ibv_qp_attr&)> mistakes[] = {
      {IBV_QP_SQ_PSN, [](ibv_qp_attr& a) { a.sq_psn = 5; }},
      {IBV_QP_DEST_QPN, [](ibv_qp_attr& a) { a.dest_qp_num = 5; }},
      {IBV_QP_AV, [](ibv_qp_attr& a) { a.ah_attr.is_global = 1; }},  // GID all zero
  };
  for (const auto& [mask, make_mistake] : mistakes) {
    FakePair pair;
    ASSERT_EQ(Recv(pair.b, 0, 8), 0);
    ibv_qp_attr attributes = {};
    make_mistake(attributes);
    ASSERT_TRUE(pair.a.device->ModifyQp(pair.a.qp.get(), attributes, mask, "within RTS"));
    ASSERT_EQ(Send(pair.a, 1), 0);
    EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_RETRY_EXC_ERR}) << mask;
    EXPECT_TRUE(Drain(pair.b.recv_cq).empty());
  }
}

TEST(FakeErrors, ChosenFailureHitsTheNextRequestOnly) {
  FakePair pair;
  ASSERT_EQ(Recv(pair.b, 0, 8), 0);
  pair.fabric->FailNextSend(pair.a.qp.get(), IBV_WC_RESP_TIMEOUT_ERR);
  ASSERT_EQ(Send(pair.a, 1, 4, /*flags=*/0), 0);
  const auto sent = Drain(pair.a.send_cq);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].status, IBV_WC_RESP_TIMEOUT_ERR);
  EXPECT_EQ(sent[0].wr_id, 4U);
  EXPECT_TRUE(Drain(pair.b.recv_cq).empty());
  EXPECT_EQ(pair.fabric->Look(pair.a.qp.get()).state, IBV_QPS_ERR);
}

TEST(FakeErrors, ResetForgetsEverythingAndTheQpWorksAgain) {
  FakePair pair;
  ASSERT_EQ(Recv(pair.b, 0, 1), 0);
  ASSERT_EQ(Send(pair.a, 2), 0);
  ibv_qp_attr reset = {};
  reset.qp_state = IBV_QPS_RESET;
  for (FakeEnd* end : {&pair.a, &pair.b}) {
    ASSERT_TRUE(end->device->ModifyQp(end->qp.get(), reset, IBV_QP_STATE, "ERR to RESET"));
    EXPECT_TRUE(Drain(end->send_cq).empty());
    EXPECT_TRUE(Drain(end->recv_cq).empty());
    EXPECT_EQ(pair.fabric->Look(end->qp.get()).recv_slots_used, 0U);
  }
  ConnectFakeEnds(pair.a, pair.b);
  ASSERT_EQ(Recv(pair.b, 0, 8), 0);
  ASSERT_EQ(Send(pair.a, 2), 0);
  EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_SUCCESS});
}

}  // namespace
}  // namespace verbscope
