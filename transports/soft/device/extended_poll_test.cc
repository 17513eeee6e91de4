// ibv_start_poll, ibv_next_poll, ibv_end_poll and what they show.
#include <cerrno>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class ExtendedPollTest : public DeviceTest {
 protected:
  static int Start(ibv_cq_ex* cq) {
    ibv_poll_cq_attr attributes = {};
    const Deadline deadline = Soon();
    int result = 0;
    do {
      result = ibv_start_poll(cq, &attributes);
    } while (result == ENOENT && !deadline.Passed());
    return result;
  }
};

TEST_P(ExtendedPollTest, ItIsTheSameQueue) {
  auto [a, b] = ConnectedPair();
  ibv_cq_ex* cq = b.device->Extended(b.recv_cq);
  ASSERT_NE(cq, nullptr);
  EXPECT_EQ(ibv_cq_ex_to_cq(cq), b.recv_cq);
  EXPECT_EQ(cq->cqe, b.recv_cq->cqe);
}

TEST_P(ExtendedPollTest, AnEmptyQueueHasNoEntry) {
  auto [a, b] = ConnectedPair();
  ibv_poll_cq_attr attributes = {};
  EXPECT_EQ(ibv_start_poll(b.device->Extended(b.recv_cq), &attributes), ENOENT);
}

TEST_P(ExtendedPollTest, UnknownAttributesAreRefused) {
  auto [a, b] = ConnectedPair();
  ibv_poll_cq_attr attributes = {.comp_mask = 1};
  EXPECT_EQ(ibv_start_poll(b.device->Extended(b.recv_cq), &attributes), EINVAL);
}

TEST_P(ExtendedPollTest, ABatchIsReadInOrderWithAllItsFields) {
  auto [a, b] = ConnectedPair();
  for (uint64_t i = 0; i < 5; ++i) ASSERT_EQ(PostReceive(b, i, 64), 0);
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_EQ(Post(a, SendImmediate(a, 10 + i, 8 * i, 0x100 + i)), 0);
  }
  WaitFor(a.send_cq, 5);
  ibv_cq_ex* cq = b.device->Extended(b.recv_cq);
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_EQ(i == 0 ? Start(cq) : ibv_next_poll(cq), 0);
    EXPECT_EQ(cq->wr_id, i);
    EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
    EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV);
    EXPECT_EQ(ibv_wc_read_byte_len(cq), 8 * i);
    EXPECT_EQ(ibv_wc_read_imm_data(cq), 0x100U + i);
    EXPECT_EQ(ibv_wc_read_wc_flags(cq), static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(ibv_wc_read_qp_num(cq), b.qp->qp_num);
    EXPECT_EQ(ibv_wc_read_src_qp(cq), a.qp->qp_num);
    EXPECT_EQ(ibv_wc_read_vendor_err(cq), 0U);
    EXPECT_EQ(ibv_wc_read_slid(cq), 0U);
    EXPECT_EQ(ibv_wc_read_sl(cq), 0U);
    EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 0U);
  }
  EXPECT_EQ(ibv_next_poll(cq), ENOENT);
  ibv_end_poll(cq);
  ExpectEmpty(b.recv_cq);
}

TEST_P(ExtendedPollTest, BothWaysOfPollingTakeTurns) {
  auto [a, b] = ConnectedPair();
  for (uint64_t i = 0; i < 6; ++i) ASSERT_EQ(PostReceive(b, i, 64), 0);
  for (uint64_t i = 0; i < 6; ++i) ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
  ibv_cq_ex* cq = b.device->Extended(b.recv_cq);
  for (uint64_t i = 0; i < 6; i += 2) {
    ASSERT_EQ(Start(cq), 0);
    EXPECT_EQ(cq->wr_id, i);
    ibv_end_poll(cq);
    EXPECT_EQ(Wait(b.recv_cq).wr_id, i + 1);
  }
}

TEST_P(ExtendedPollTest, ErrorsShowTheirStatus) {
  auto [a, b] = ConnectedPair();
  SendWork work = Write(a, b, 7, 64);
  work.wr.wr.rdma.rkey ^= 1;
  ASSERT_EQ(Post(a, work), 0);
  ibv_cq_ex* cq = a.device->Extended(a.send_cq);
  ASSERT_EQ(Start(cq), 0);
  EXPECT_EQ(cq->wr_id, 7U);
  EXPECT_EQ(cq->status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_NE(ibv_wc_read_vendor_err(cq), 0U) << "the syndrome of the NAK";
  ibv_end_poll(cq);
}

INSTANTIATE_TEST_SUITE_P(, ExtendedPollTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
