// Order in completion queues, shared queues, full queues, resizing.
#include <cerrno>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class CompletionQueueTest : public DeviceTest {
 protected:
  // Another QP that completes where `end` does.
  End Sharing(End& end) {
    End other;
    other.device = end.device;
    other.pd = Must(end.device->AllocatePd());
    other.buffer = Must(end.device->AllocateBuffer({.bytes = 4096}));
    other.mr = Must(end.device->RegisterMemory(other.pd.get(), other.buffer->bytes(), kFullAccess));
    other.send_cq = end.send_cq;
    other.recv_cq = end.recv_cq;
    verbscope::QpOptions qp;
    qp.pd = other.pd.get();
    qp.send_cq = other.send_cq;
    qp.recv_cq = other.recv_cq;
    qp.max_send_wr = qp.max_recv_wr = 64;
    other.qp = std::move(Must(end.device->CreateQp(qp)).qp);
    return other;
  }
};

TEST_P(CompletionQueueTest, CompletionsOfAQpComeInTheOrderOfItsPosts) {
  auto [a, b] = ConnectedPair();
  std::vector<ibv_wc_opcode> opcodes;
  for (uint64_t i = 0; i < 60; ++i) {
    ASSERT_EQ(PostReceive(b, i, 4096, 8192), 0);
    switch (i % 4) {
      case 0:
        ASSERT_EQ(Post(a, Send(a, i, 4096)), 0);
        opcodes.push_back(IBV_WC_SEND);
        break;
      case 1:
        ASSERT_EQ(Post(a, Read(a, b, i, 2000)), 0);
        opcodes.push_back(IBV_WC_RDMA_READ);
        break;
      case 2:
        ASSERT_EQ(Post(a, Write(a, b, i, 3000)), 0);
        opcodes.push_back(IBV_WC_RDMA_WRITE);
        break;
      default:
        ASSERT_EQ(Post(a, FetchAdd(a, b, i, 1)), 0);
        opcodes.push_back(IBV_WC_FETCH_ADD);
    }
  }
  const auto sends = WaitFor(a.send_cq, 60);
  for (uint64_t i = 0; i < sends.size(); ++i) {
    EXPECT_EQ(sends[i].wr_id, i);
    EXPECT_EQ(sends[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(sends[i].opcode, opcodes[i]);
  }
  const auto receives = WaitFor(b.recv_cq, 15);
  for (uint64_t i = 0; i < receives.size(); ++i) EXPECT_EQ(receives[i].wr_id, i);
}

TEST_P(CompletionQueueTest, ASharedQueueKeepsTheOrderOfEachQp) {
  auto [a, b] = ConnectedPair({.one_cq = true}, {.one_cq = true});
  End a2 = Sharing(a);
  End b2 = Sharing(b);
  ASSERT_TRUE(Connect(a2, b2));
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(PostReceive(b, i, 64), 0);
    ASSERT_EQ(PostReceive(b2, i, 64), 0);
    ASSERT_EQ(Post(a, Send(a, i, 64)), 0);
    ASSERT_EQ(Post(a2, Send(a2, i, 64)), 0);
  }
  for (ibv_cq* cq : {a.send_cq, b.send_cq}) {
    const uint32_t one = cq == a.send_cq ? a.qp->qp_num : b.qp->qp_num;
    uint64_t next[2] = {0, 0};
    for (const ibv_wc& wc : WaitFor(cq, 60)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      EXPECT_EQ(wc.wr_id, next[wc.qp_num == one ? 0 : 1]++);
    }
    EXPECT_EQ(next[0], 30U);
    EXPECT_EQ(next[1], 30U);
  }
}

TEST_P(CompletionQueueTest, APollTakesNoMoreThanWanted) {
  auto [a, b] = ConnectedPair();
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(PostReceive(b, i, 8), 0);
    ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
  }
  WaitFor(a.send_cq, 10);
  std::vector<ibv_wc> wcs(16);
  EXPECT_EQ(ibv_poll_cq(b.recv_cq, 0, wcs.data()), 0);
  EXPECT_EQ(ibv_poll_cq(b.recv_cq, 4, wcs.data()), 4);
  EXPECT_EQ(ibv_poll_cq(b.recv_cq, 16, wcs.data() + 4), 6);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(wcs[i].wr_id, i);
}

TEST_P(CompletionQueueTest, AFullQueueFailsItselfAndItsQpsAndKeepsWhatItHas) {
  auto [a, b] = ConnectedPair({}, {.cqe = 4});
  End b2 = Sharing(b);
  for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
  EXPECT_TRUE(AwaitAsyncEvent(second(), "CQ_ERR"));
  EXPECT_TRUE(AwaitUntil([&b = b] { return StateOf(b) == IBV_QPS_ERR; }));
  EXPECT_EQ(StateOf(b2), IBV_QPS_ERR) << "every QP of the CQ";
  if (expected().error_events) {
    EXPECT_TRUE(AwaitAsyncEvent(second(), "QP_FATAL"));
    EXPECT_TRUE(AwaitAsyncEvent(second(), "QP_FATAL"));
  }
  EXPECT_EQ(Counter(second(), "cq_overrun"), 1U);
  const auto receives = WaitFor(b.recv_cq, 4);
  for (uint64_t i = 0; i < receives.size(); ++i) {
    EXPECT_EQ(receives[i].wr_id, i);
    EXPECT_EQ(receives[i].status, IBV_WC_SUCCESS);
  }
  ExpectEmpty(b.recv_cq);
}

TEST_P(CompletionQueueTest, AFlushThatOverrunsIsHeardOfToo) {
  auto [a, b] = ConnectedPair({}, {.cqe = 4});
  ASSERT_TRUE(ToState(b, IBV_QPS_ERR));
  End b2 = Sharing(b);
  for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  // At once: posting to a QP in ERR is what overran, and nobody polls.
  EXPECT_EQ(StateOf(b2), IBV_QPS_ERR);
  EXPECT_TRUE(AwaitAsyncEvent(second(), "CQ_ERR"));
  // A new CQ, perhaps at the address of the old one, has nothing to do with it.
  ASSERT_TRUE(b2.qp.Close());
  b.Close();
  auto [c, d] = ConnectedPair({}, {.cqe = 4});
  ASSERT_EQ(PostReceive(d, 1, 8), 0);
  ASSERT_EQ(Post(c, Send(c, 2, 8)), 0);
  EXPECT_EQ(Wait(c.send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(StateOf(d), IBV_QPS_RTS);
}

TEST_P(CompletionQueueTest, ResizingKeepsCompletionsAndOrder) {
  auto [a, b] = ConnectedPair({}, {.cqe = 8});
  for (uint64_t i = 0; i < 40; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  for (uint64_t i = 0; i < 6; ++i) ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
  WaitFor(a.send_cq, 6);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 0U);
  errno = 0;
  const Status small = b.device->ResizeCq(b.recv_cq, 4);
  ASSERT_FALSE(small) << "five are stored";
  EXPECT_EQ(small.error().errno_value, EINVAL);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_TRUE(b.device->ResizeCq(b.recv_cq, 40));
  EXPECT_EQ(b.recv_cq->cqe, 40);
  for (uint64_t i = 6; i < 40; ++i) ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
  WaitFor(a.send_cq, 34);
  const auto receives = WaitFor(b.recv_cq, 39);
  for (uint64_t i = 0; i < receives.size(); ++i) EXPECT_EQ(receives[i].wr_id, i + 1);
  EXPECT_TRUE(b.device->ResizeCq(b.recv_cq, 1));
  EXPECT_FALSE(b.device->ResizeCq(b.recv_cq, 0));
}

TEST_P(CompletionQueueTest, DestroyingAQpTakesItsCompletionsOutOfASharedQueue) {
  auto [a, b] = ConnectedPair();
  End b2 = Sharing(b);
  ASSERT_TRUE(ToInit(b2));
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(PostReceive(b, i, 8), 0);
    ASSERT_EQ(PostReceive(b2, 10 + i, 8), 0);
  }
  ASSERT_TRUE(ToState(b2, IBV_QPS_ERR));
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
  WaitFor(a.send_cq, 3);
  ASSERT_TRUE(b2.qp.Close());
  const auto receives = WaitFor(b.recv_cq, 3);
  for (uint64_t i = 0; i < receives.size(); ++i) EXPECT_EQ(receives[i].wr_id, i);
  ExpectEmpty(b.recv_cq);
}

INSTANTIATE_TEST_SUITE_P(, CompletionQueueTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
