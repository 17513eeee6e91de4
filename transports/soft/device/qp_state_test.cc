// The state machine of a QP: which transitions exist, what they need, and what an end in each state
// does with work.
#include <cerrno>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class QpStateTest : public DeviceTest {
 protected:
  QpStateTest() : end_(MakeEnd(first())), peer_(MakeEnd(second())) { EXPECT_TRUE(ToInit(peer_)); }
  Status Modify(ibv_qp_attr attributes, int mask) {
    return end_.device->ModifyQp(end_.qp.get(), attributes, mask, "test");
  }
  ibv_qp_attr Rtr() {
    const auto blob = peer_.device->PeerBlob(peer_.qp.get());
    EXPECT_TRUE(end_.device->AcceptPeerBlob(end_.qp.get(), blob));
    return RtrAttributes(*end_.device, *peer_.qp.get(), {}, peer_.device);
  }
  void ExpectRefused(ibv_qp_attr attributes, int mask) {
    const ibv_qp_state before = StateOf(end_);
    errno = 0;
    const Status status = Modify(attributes, mask);
    ASSERT_FALSE(status) << "mask " << mask;
    EXPECT_EQ(status.error().errno_value, EINVAL);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(StateOf(end_), before);
  }
  // Each required bit on its own is missed, and nothing has changed by the refusals.
  void ExpectEachBitNeeded(const ibv_qp_attr& attributes, int mask) {
    for (int bit = 1; bit <= mask; bit <<= 1) {
      if ((mask & bit) == 0 || bit == IBV_QP_STATE) continue;
      ExpectRefused(attributes, mask & ~bit);
      ExpectRefused(attributes, IBV_QP_STATE | bit);
    }
    EXPECT_TRUE(Modify(attributes, mask));
    EXPECT_EQ(StateOf(end_), attributes.qp_state);
  }

  End end_;
  End peer_;
};

TEST_P(QpStateTest, NewQpIsInResetWithItsObjects) {
  EXPECT_EQ(StateOf(end_), IBV_QPS_RESET);
  EXPECT_EQ(end_.qp->state, IBV_QPS_RESET);
  EXPECT_EQ(end_.qp->qp_type, IBV_QPT_RC);
  EXPECT_EQ(end_.qp->pd, end_.pd.get());
  EXPECT_EQ(end_.qp->send_cq, end_.send_cq);
  EXPECT_EQ(end_.qp->recv_cq, end_.recv_cq);
  EXPECT_EQ(end_.qp->srq, nullptr);
  EXPECT_EQ(end_.qp->context, end_.pd->context);
  EXPECT_GT(end_.qp->qp_num, 1U);
}

TEST_P(QpStateTest, EachTransitionNeedsEachOfItsAttributes) {
  ExpectEachBitNeeded(InitAttributes(), kInitMask);
  ExpectEachBitNeeded(Rtr(), kRtrMask);
  ExpectEachBitNeeded(RtsAttributes(), kRtsMask);
  EXPECT_EQ(end_.qp->state, IBV_QPS_RTS);
}

TEST_P(QpStateTest, StatesCannotBeSkippedOrGoneBack) {
  ExpectRefused(Rtr(), kRtrMask);
  ExpectRefused(RtsAttributes(), kRtsMask);
  ASSERT_TRUE(Modify(InitAttributes(), kInitMask));
  ExpectRefused(RtsAttributes(), kRtsMask);
  ASSERT_TRUE(Modify(Rtr(), kRtrMask));
  ExpectRefused(InitAttributes(), kInitMask);
  ExpectRefused(Rtr(), kRtrMask);
  ASSERT_TRUE(Modify(RtsAttributes(), kRtsMask));
  ExpectRefused(InitAttributes(), kInitMask);
  ExpectRefused(Rtr(), kRtrMask);
  ibv_qp_attr sqe = {};
  sqe.qp_state = IBV_QPS_SQE;
  ExpectRefused(sqe, IBV_QP_STATE);
}

TEST_P(QpStateTest, AttributesOfAnotherTransitionAreRefused) {
  ExpectRefused(InitAttributes(), kInitMask | IBV_QP_PATH_MTU);
  ASSERT_TRUE(Modify(InitAttributes(), kInitMask));
  ExpectRefused(Rtr(), kRtrMask | IBV_QP_TIMEOUT);
  ASSERT_TRUE(Modify(Rtr(), kRtrMask));
  ExpectRefused(RtsAttributes(), kRtsMask | IBV_QP_PATH_MTU);
  ASSERT_TRUE(Modify(RtsAttributes(), kRtsMask));
}

TEST_P(QpStateTest, ValuesOutOfRangeAreRefused) {
  ibv_qp_attr init = InitAttributes();
  init.port_num = 2;
  ExpectRefused(init, kInitMask);
  init = InitAttributes();
  init.pkey_index = 1;
  ExpectRefused(init, kInitMask);
  ASSERT_TRUE(Modify(InitAttributes(), kInitMask));
  ibv_qp_attr rtr = Rtr();
  rtr.min_rnr_timer = 32;
  ExpectRefused(rtr, kRtrMask);
  rtr = Rtr();
  rtr.max_dest_rd_atomic = 17;
  ExpectRefused(rtr, kRtrMask);
  ASSERT_TRUE(Modify(Rtr(), kRtrMask));
  ibv_qp_attr rts = RtsAttributes();
  rts.timeout = 32;
  ExpectRefused(rts, kRtsMask);
  rts = RtsAttributes();
  rts.retry_cnt = 8;
  ExpectRefused(rts, kRtsMask);
  rts = RtsAttributes();
  rts.rnr_retry = 8;
  ExpectRefused(rts, kRtsMask);
  rts = RtsAttributes();
  rts.max_rd_atomic = 17;
  ExpectRefused(rts, kRtsMask);
  EXPECT_TRUE(Modify(RtsAttributes(), kRtsMask));
}

TEST_P(QpStateTest, AWrongCurrentStateIsRefused) {
  ASSERT_TRUE(Modify(InitAttributes(), kInitMask));
  ASSERT_TRUE(Modify(Rtr(), kRtrMask));
  ibv_qp_attr rts = RtsAttributes();
  rts.cur_qp_state = IBV_QPS_RTS;
  ExpectRefused(rts, kRtsMask | IBV_QP_CUR_STATE);
  rts.cur_qp_state = IBV_QPS_RTR;
  EXPECT_TRUE(Modify(rts, kRtsMask | IBV_QP_CUR_STATE));
}

TEST_P(QpStateTest, ErrorAndResetCanBeReachedFromEverywhere) {
  for (int steps = 0; steps <= 3; ++steps) {
    for (const ibv_qp_state to : {IBV_QPS_ERR, IBV_QPS_RESET}) {
      if (steps > 0) {
        ASSERT_TRUE(Modify(InitAttributes(), kInitMask));
      }
      if (steps > 1) {
        ASSERT_TRUE(Modify(Rtr(), kRtrMask));
      }
      if (steps > 2) {
        ASSERT_TRUE(Modify(RtsAttributes(), kRtsMask));
      }
      ASSERT_TRUE(ToState(end_, to));
      EXPECT_EQ(StateOf(end_), to);
      ASSERT_TRUE(ToState(end_, IBV_QPS_RESET));
    }
  }
}

TEST_P(QpStateTest, QpsGoInEveryState) {
  for (int steps = 0; steps <= 4; ++steps) {
    End other = MakeEnd(first());
    if (steps > 0) {
      ASSERT_TRUE(ToInit(other));
    }
    if (steps > 1) {
      ASSERT_TRUE(ToRtr(other, peer_));
    }
    if (steps > 2) {
      ASSERT_TRUE(ToRts(other));
    }
    if (steps > 3) {
      ASSERT_TRUE(ToState(other, IBV_QPS_ERR));
    }
    EXPECT_TRUE(other.qp.Close());
  }
}

TEST_P(QpStateTest, AQpThatLearntNoPeerCannotGoToRtr) {
  if (udp()) GTEST_SKIP() << "an address is enough there";
  ASSERT_TRUE(Modify(InitAttributes(), kInitMask));
  const Status status = Modify(RtrAttributes(first(), *peer_.qp.get(), {}, peer_.device), kRtrMask);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().error_class, ErrorClass::kSetup);
  EXPECT_FALSE(end_.device->AcceptPeerBlob(end_.qp.get(), {}));
  EXPECT_TRUE(Modify(Rtr(), kRtrMask));
}

INSTANTIATE_TEST_SUITE_P(, QpStateTest, kAllDevices, DeviceParam::NameOf);

class QpReuseTest : public DeviceTest {};

TEST_P(QpReuseTest, ErrorFlushesSendsAndReceivesInOrder) {
  auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 7, .min_rnr_timer = 31});
  for (uint64_t id = 1; id <= 5; ++id) {
    EXPECT_EQ(PostReceive(a, 10 + id, 64), 0);
    SendWork work = Send(a, id, 64);
    if (id % 2 == 0) work.wr.send_flags = 0;  // completes all the same
    EXPECT_EQ(Post(a, work), 0);
  }
  ASSERT_TRUE(ToState(a, IBV_QPS_ERR));
  for (uint64_t id = 1; id <= 5; ++id) {
    const ibv_wc send = Wait(a.send_cq);
    EXPECT_EQ(send.wr_id, id);
    EXPECT_EQ(send.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(send.qp_num, a.qp->qp_num);
    const ibv_wc receive = Wait(a.recv_cq);
    EXPECT_EQ(receive.wr_id, 10 + id);
    EXPECT_EQ(receive.status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(receive.qp_num, a.qp->qp_num);
  }
  ExpectEmpty(a.send_cq);
  ExpectEmpty(a.recv_cq);
}

TEST_P(QpReuseTest, WorkPostedInErrorIsFlushedAtOnce) {
  auto [a, b] = ConnectedPair();
  ASSERT_TRUE(ToState(a, IBV_QPS_ERR));
  for (uint64_t id = 1; id <= 200; ++id) {  // more than the queues hold: polling frees them
    ASSERT_EQ(Post(a, Send(a, id, 64)), 0);
    ASSERT_EQ(PostReceive(a, id, 64), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(Wait(a.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_EQ(StateOf(b), IBV_QPS_RTS) << "nothing is said to the peer";
}

TEST_P(QpReuseTest, AfterErrorAndResetTheQpIsAsNew) {
  auto [a, b] = ConnectedPair();
  for (int round = 0; round < 5; ++round) {
    ASSERT_EQ(PostReceive(b, 1, 4096), 0);
    ASSERT_EQ(Post(a, Send(a, 2, 4096)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
    // What is not polled yet of the old life goes with the reset.
    ASSERT_EQ(PostReceive(a, 3, 64), 0);
    for (End* end : {&a, &b}) {
      ASSERT_TRUE(ToState(*end, IBV_QPS_ERR));
      ASSERT_TRUE(ToState(*end, IBV_QPS_RESET));
    }
    ExpectEmpty(a.recv_cq);
    const Status status = Connect(a, b);
    ASSERT_TRUE(status) << status.error().ToText();
  }
}

TEST_P(QpReuseTest, ReceivesPostedInInitAreServedFromRtrOn) {
  End a = MakeEnd(first());
  End b = MakeEnd(second());
  for (End* end : {&a, &b}) {
    ASSERT_TRUE(ToInit(*end));
  }
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ASSERT_TRUE(ToRtr(a, b));
  ASSERT_TRUE(ToRts(a));
  ASSERT_TRUE(ToRtr(b, a));
  ASSERT_EQ(PostReceive(b, 2, 64), 0);
  ASSERT_EQ(Post(a, Send(a, 3, 64)), 0);
  ASSERT_EQ(Post(a, Send(a, 4, 64)), 0);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 2U);
  EXPECT_EQ(Wait(a.send_cq).wr_id, 3U);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  // The first packet in RTR is the sign for a program that waits with RTS.
  EXPECT_EQ(AsyncEvents(second()), expected().error_events ? std::vector<std::string>{"COMM_EST"}
                                                           : std::vector<std::string>{});
  ASSERT_TRUE(ToRts(b));
}

TEST_P(QpReuseTest, ADrainedQpBeginsNothingAndGoesOn) {
  auto [a, b] = ConnectedPair();
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_SQD;
  attributes.en_sqd_async_notify = 1;
  ASSERT_TRUE(a.device->ModifyQp(a.qp.get(), attributes, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY,
                                 "RTS to SQD"));
  EXPECT_TRUE(AwaitAsyncEvent(first(), "SQ_DRAINED"));
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 64)), 0);
  ExpectEmpty(a.send_cq);
  // Receiving goes on meanwhile.
  ASSERT_EQ(PostReceive(a, 3, 64), 0);
  ASSERT_EQ(Post(b, Send(b, 4, 64)), 0);
  EXPECT_EQ(Wait(a.recv_cq).wr_id, 3U);
  ASSERT_TRUE(ToState(a, IBV_QPS_RTS));
  EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
}

INSTANTIATE_TEST_SUITE_P(, QpReuseTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
