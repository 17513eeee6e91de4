// ibv_wr_start … ibv_wr_complete: every operation, data in every form, and all or nothing.
#include <array>
#include <cerrno>
#include <cstring>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class WorkRequestTest : public DeviceTest {
 protected:
  static ibv_qp_ex* Begin(End& end, uint64_t id) {
    ibv_qp_ex* qp = end.device->Extended(end.qp.get());
    ibv_wr_start(qp);
    qp->wr_id = id;
    qp->wr_flags = IBV_SEND_SIGNALED;
    return qp;
  }
  static void SetData(ibv_qp_ex* qp, const End& end, uint32_t bytes) {
    ibv_wr_set_sge(qp, end.mr->lkey, end.address(), bytes);
  }
};

TEST_P(WorkRequestTest, ItIsTheSameQp) {
  auto [a, b] = ConnectedPair();
  EXPECT_EQ(&a.device->Extended(a.qp.get())->qp_base, a.qp.get());
}

TEST_P(WorkRequestTest, SendsOfAllKinds) {
  auto [a, b] = ConnectedPair();
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(PostReceive(b, i, 64), 0);
  ibv_qp_ex* qp = Begin(a, 1);
  ibv_wr_send(qp);
  SetData(qp, a, 16);
  qp->wr_id = 2;
  ibv_wr_send_imm(qp, 0x77);
  SetData(qp, a, 32);
  qp->wr_id = 3;
  ibv_wr_send_inv(qp, 0x1234);
  SetData(qp, a, 8);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  for (uint64_t id = 1; id <= 3; ++id) {
    const ibv_wc wc = Wait(a.send_cq);
    EXPECT_EQ(wc.wr_id, id);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_SEND);
  }
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 16U);
  EXPECT_EQ(Wait(b.recv_cq).imm_data, 0x77U);
  EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_P(WorkRequestTest, OneSidedOperationsOfAllKinds) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 9, 0), 0);
  const auto data = Pattern(64, 1);
  std::memcpy(a.at(0), data.data(), 64);
  ibv_qp_ex* qp = Begin(a, 1);
  ibv_wr_rdma_write(qp, b.mr->rkey, b.address(1024));
  SetData(qp, a, 64);
  ibv_wr_rdma_write_imm(qp, b.mr->rkey, b.address(2048), 0x55);
  SetData(qp, a, 64);
  ibv_wr_rdma_read(qp, b.mr->rkey, b.address(1024));
  ibv_wr_set_sge(qp, a.mr->lkey, a.address(4096), 64);
  ibv_wr_atomic_fetch_add(qp, b.mr->rkey, b.address(), 5);
  ibv_wr_set_sge(qp, a.mr->lkey, a.address(8192), 8);
  ibv_wr_atomic_cmp_swp(qp, b.mr->rkey, b.address(), 5, 6);
  ibv_wr_set_sge(qp, a.mr->lkey, a.address(8200), 8);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  for (const ibv_wc_opcode opcode : {IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_RDMA_READ,
                                     IBV_WC_FETCH_ADD, IBV_WC_COMP_SWAP}) {
    const ibv_wc wc = Wait(a.send_cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, opcode);
  }
  EXPECT_EQ(Wait(b.recv_cq).imm_data, 0x55U);
  EXPECT_EQ(std::memcmp(b.at(2048), data.data(), 64), 0);
  EXPECT_EQ(std::memcmp(a.at(4096), data.data(), 64), 0);
  const std::array<uint64_t, 2> fetched = {0, 5};
  EXPECT_EQ(std::memcmp(a.at(8192), fetched.data(), 16), 0);
  EXPECT_EQ(b.at(0)[0], std::byte{6});
}

TEST_P(WorkRequestTest, ListsAndInlineDataAndLists) {
  auto [a, b] = ConnectedPair({.max_inline_bytes = 64});
  const auto data = Pattern(60, 2);
  std::memcpy(a.at(0), data.data(), 60);
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(PostReceive(b, i, 64, 1024 * i), 0);
  auto local = std::make_unique<std::vector<std::byte>>(data);
  ibv_qp_ex* qp = Begin(a, 1);
  ibv_wr_send(qp);
  const std::array<ibv_sge, 2> sges = {
      {{a.address(0), 20, a.mr->lkey}, {a.address(20), 40, a.mr->lkey}}};
  ibv_wr_set_sge_list(qp, sges.size(), sges.data());
  ibv_wr_send(qp);
  ibv_wr_set_inline_data(qp, local->data(), 60);
  ibv_wr_send(qp);
  const std::array<ibv_data_buf, 2> pieces = {{{local->data(), 1}, {local->data() + 1, 59}}};
  ibv_wr_set_inline_data_list(qp, pieces.size(), pieces.data());
  local.reset();  // taken already
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  for (const ibv_wc& wc : WaitFor(b.recv_cq, 3)) {
    EXPECT_EQ(wc.byte_len, 60U);
    EXPECT_EQ(std::memcmp(b.at(1024 * wc.wr_id), data.data(), 60), 0);
  }
  WaitFor(a.send_cq, 3);
}

TEST_P(WorkRequestTest, NoDataIsAMessageOfNothing) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ibv_qp_ex* qp = Begin(a, 1);
  ibv_wr_send(qp);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 0U);
}

TEST_P(WorkRequestTest, AbortedBatchesLeaveNoTrace) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ibv_qp_ex* qp = Begin(a, 1);
  for (int i = 0; i < 3; ++i) ibv_wr_send(qp);
  ibv_wr_abort(qp);
  ExpectEmpty(a.send_cq);
  qp = Begin(a, 2);
  ibv_wr_send(qp);
  SetData(qp, a, 8);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 8U);
}

TEST_P(WorkRequestTest, ABatchThatDoesNotFitIsNotPostedAtAll) {
  auto [a, b] = ConnectedPair({.max_send_wr = 4});
  for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(PostReceive(b, i, 64), 0);
  ibv_qp_ex* qp = Begin(a, 1);
  for (int i = 0; i < 5; ++i) {
    ibv_wr_send(qp);
    SetData(qp, a, 8);
  }
  errno = 0;
  EXPECT_EQ(ibv_wr_complete(qp), ENOMEM);
  ExpectEmpty(a.send_cq);
  ExpectEmpty(b.recv_cq);
  qp = Begin(a, 2);
  for (int i = 0; i < 4; ++i) {
    ibv_wr_send(qp);
    SetData(qp, a, 8);
  }
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(WaitFor(a.send_cq, 4).size(), 4U);
}

TEST_P(WorkRequestTest, OneBadRequestStopsTheWholeBatch) {
  auto [a, b] = ConnectedPair({.max_inline_bytes = 16});
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  std::array<std::byte, 64> local = {};
  const std::array<ibv_sge, 5> wide = {};
  for (int kind = 0; kind < 4; ++kind) {
    ibv_qp_ex* qp = Begin(a, 1);
    if (kind != 3) {
      ibv_wr_send(qp);
      SetData(qp, a, 8);
    }
    if (kind == 0) {
      ibv_wr_send(qp);
      ibv_wr_set_sge_list(qp, wide.size(), wide.data());
    } else if (kind == 1) {
      ibv_wr_send(qp);
      ibv_wr_set_inline_data(qp, local.data(), 17);
    } else if (kind == 2) {
      ibv_wr_rdma_read(qp, b.mr->rkey, b.address());
      ibv_wr_set_inline_data(qp, local.data(), 8);
    } else {
      SetData(qp, a, 8);  // of no request
    }
    EXPECT_EQ(ibv_wr_complete(qp), EINVAL) << kind;
  }
  ExpectEmpty(a.send_cq);
  ExpectEmpty(b.recv_cq);
}

TEST_P(WorkRequestTest, TheInlineFlagComesFromTheDataAlone) {
  auto [a, b] = ConnectedPair({.max_inline_bytes = 16});
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ibv_qp_ex* qp = Begin(a, 1);
  qp->wr_flags |= IBV_SEND_INLINE;
  ibv_wr_send(qp);
  SetData(qp, a, 32);
  ASSERT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 32U);
}

TEST_P(WorkRequestTest, ItObeysTheStateOfTheQp) {
  End a = MakeEnd(first());
  ibv_qp_ex* qp = Begin(a, 1);
  ibv_wr_send(qp);
  EXPECT_EQ(ibv_wr_complete(qp), EINVAL);
  ASSERT_TRUE(ToInit(a));
  ASSERT_TRUE(ToState(a, IBV_QPS_ERR));
  qp = Begin(a, 2);
  ibv_wr_send(qp);
  EXPECT_EQ(ibv_wr_complete(qp), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
}

INSTANTIATE_TEST_SUITE_P(, WorkRequestTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
