// What both ends hear when a request cannot be executed, and that nothing is executed after it.
#include <cstring>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class ErrorPairTest : public DeviceTest {
 protected:
  // The request in `work` ends with `status` at the requester, those behind it are flushed, and the
  // receives of the responder too, unless one of them took the blame (`responder`).
  void ExpectFailure(End& a, End& b, SendWork work, ibv_wc_status status,
                     std::optional<ibv_wc_status> responder, bool signalled = true) {
    if (!signalled) work.wr.send_flags = 0;
    ASSERT_EQ(Post(a, work), 0);
    const ibv_wc failed = Wait(a.send_cq);
    EXPECT_EQ(failed.status, status);
    EXPECT_EQ(failed.wr_id, work.wr.wr_id);
    EXPECT_EQ(failed.qp_num, a.qp->qp_num);
    EXPECT_EQ(StateOf(a), IBV_QPS_ERR);
    ASSERT_EQ(Post(a, Send(a, 100, 8)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
    if (responder) {
      const ibv_wc receive = Wait(b.recv_cq);
      EXPECT_EQ(receive.status, *responder);
      EXPECT_EQ(receive.qp_num, b.qp->qp_num);
      EXPECT_EQ(StateOf(b), IBV_QPS_ERR);
      ASSERT_EQ(PostReceive(b, 101, 8), 0);
      EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
    }
  }
  // The responder's program hears of it by an event, or under rxe not at all.
  void ExpectEvent(std::string_view type) {
    const auto events = AsyncEvents(second());
    if (expected().error_events) {
      ASSERT_EQ(events.size(), 1U);
      EXPECT_EQ(events.front(), type);
    } else {
      EXPECT_TRUE(events.empty());
    }
  }
};

TEST_P(ErrorPairTest, SendIntoTooSmallReceiveFailsBothSides) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 63), 0);
  ExpectFailure(a, b, Send(a, 2, 64), expected().too_long_requester, expected().too_long_responder);
}

TEST_P(ErrorPairTest, UnsignalledSendsCompleteWhenTheyFail) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 63), 0);
  ExpectFailure(a, b, Send(a, 2, 64), expected().too_long_requester, expected().too_long_responder,
                /*signalled=*/false);
}

TEST_P(ErrorPairTest, ALongSendIntoATooSmallReceiveFailsInItsMiddle) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 5000), 0);
  ExpectFailure(a, b, Send(a, 2, 20000), expected().too_long_requester,
                expected().too_long_responder);
}

TEST_P(ErrorPairTest, ReceivesIntoBadMemoryFailBothSides) {
  for (int kind = 0; kind < 4; ++kind) {
    auto [a, b] = ConnectedPair();
    ibv_sge sge = {.addr = b.address(), .length = 64, .lkey = b.mr->lkey};
    Mr gone = Must(b.device->RegisterMemory(b.pd.get(), b.buffer->bytes(), kFullAccess));
    Mr read_only = Must(b.device->RegisterMemory(b.pd.get(), b.buffer->bytes(), 0));
    if (kind == 0) sge.lkey ^= 0x5a5a;
    if (kind == 1) sge.addr = b.address(b.buffer->bytes().size() - 63);
    if (kind == 2) sge.lkey = read_only->lkey;
    if (kind == 3) sge.lkey = gone->lkey;
    ibv_recv_wr wr = {.wr_id = 1, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(b.qp.get(), &wr, &bad), 0);
    ASSERT_TRUE(gone.Close());
    ExpectFailure(a, b, Send(a, 2, 64), IBV_WC_REM_OP_ERR, expected().bad_receive_responder);
  }
}

TEST_P(ErrorPairTest, AReceiveLongerThanItsMemoryIsFineWhileTheDataFits) {
  auto [a, b] = ConnectedPair();
  const size_t last = b.buffer->bytes().size() - 64;
  ASSERT_EQ(PostReceive(b, 1, 4096, last), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 64)), 0);
  EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
}

TEST_P(ErrorPairTest, BadRemoteKeysRangesAndRightsAreAccessErrors) {
  for (int kind = 0; kind < 5; ++kind) {
    for (int op = 0; op < 3; ++op) {
      auto [a, b] = ConnectedPair();
      ASSERT_EQ(PostReceive(b, 50, 64), 0);
      Mr local_only =
          Must(b.device->RegisterMemory(b.pd.get(), b.buffer->bytes(), IBV_ACCESS_LOCAL_WRITE));
      Pd foreign = Must(b.device->AllocatePd());
      Mr other = Must(b.device->RegisterMemory(foreign.get(), b.buffer->bytes(), kFullAccess));
      SendWork work = op == 0   ? Write(a, b, 2, 64)
                      : op == 1 ? Read(a, b, 2, 64)
                                : FetchAdd(a, b, 2, 1);
      // The two unions keep address and key at the same places.
      uint64_t& address = op == 2 ? work.wr.wr.atomic.remote_addr : work.wr.wr.rdma.remote_addr;
      uint32_t& key = op == 2 ? work.wr.wr.atomic.rkey : work.wr.wr.rdma.rkey;
      if (kind == 0) key ^= 1;
      if (kind == 1) address -= 8;
      if (kind == 2) address += b.buffer->bytes().size() - (op == 2 ? 0 : 63);
      if (kind == 3) key = local_only->rkey;
      if (kind == 4) key = other->rkey;
      const auto before = Pattern(64, 9);
      std::memcpy(a.at(0), before.data(), 64);
      std::memset(b.at(0), 0x11, 64);
      ExpectFailure(a, b, work, IBV_WC_REM_ACCESS_ERR, IBV_WC_WR_FLUSH_ERR);
      ExpectEvent("QP_ACCESS_ERR");
      EXPECT_EQ(std::memcmp(a.at(0), before.data(), 64), 0) << "nothing may be read";
      EXPECT_EQ(b.at(0)[0], std::byte{0x11}) << "nothing may be written";
    }
  }
}

TEST_P(ErrorPairTest, OperationsThatTheQpForbidsAreInvalidRequests) {
  for (int op = 0; op < 3; ++op) {
    auto [a, b] = ConnectedPair({}, {}, {.access = 0});
    ASSERT_EQ(PostReceive(b, 50, 64), 0);
    const SendWork work = op == 0   ? Write(a, b, 2, 64)
                          : op == 1 ? Read(a, b, 2, 64)
                                    : FetchAdd(a, b, 2, 1);
    ExpectFailure(a, b, work, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR);
    ExpectEvent("QP_REQ_ERR");
  }
}

TEST_P(ErrorPairTest, UnalignedAtomicsAreInvalidRequests) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 50, 64), 0);
  std::memset(b.at(0), 0x22, 64);
  SendWork work = FetchAdd(a, b, 2, 1);
  work.wr.wr.atomic.remote_addr += 4;
  ExpectFailure(a, b, work, IBV_WC_REM_INV_REQ_ERR, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(b.at(0)[4], std::byte{0x22});
}

TEST_P(ErrorPairTest, BadLocalKeysFailHereAndThePeerHearsNothing) {
  for (int op = 0; op < 3; ++op) {
    auto [a, b] = ConnectedPair();
    ASSERT_EQ(PostReceive(b, 50, 64), 0);
    const uint64_t seen = Counter(second(), "rcvd_pkts");
    SendWork work = op == 0 ? Send(a, 2, 64) : op == 1 ? Write(a, b, 2, 64) : Send(a, 2, 20000);
    work.sge.lkey ^= 0x10;
    ExpectFailure(a, b, work, IBV_WC_LOC_PROT_ERR, std::nullopt);
    EXPECT_EQ(Counter(second(), "rcvd_pkts"), seen);
    EXPECT_EQ(StateOf(b), IBV_QPS_RTS);
  }
}

TEST_P(ErrorPairTest, FetchedDataThatCannotBeStoredIsAProtectionError) {
  for (int kind = 0; kind < 3; ++kind) {
    for (const bool atomic : {false, true}) {
      auto [a, b] = ConnectedPair();
      Mr read_only = Must(a.device->RegisterMemory(a.pd.get(), a.buffer->bytes(), 0));
      SendWork work = atomic ? FetchAdd(a, b, 2, 1) : Read(a, b, 2, 64);
      if (kind == 0) work.sge.lkey ^= 0x10;
      if (kind == 1) work.sge.lkey = read_only->lkey;
      if (kind == 2) work.sge.addr = a.address(a.buffer->bytes().size() - (atomic ? 7 : 63));
      ExpectFailure(a, b, work, IBV_WC_LOC_PROT_ERR, std::nullopt);
    }
  }
}

TEST_P(ErrorPairTest, ARequestWithBothKeysBadFailsWhereItIsLookedAtFirst) {
  auto [a, b] = ConnectedPair();
  SendWork read = Read(a, b, 1, 64);
  read.sge.lkey ^= 2;
  read.wr.wr.rdma.rkey ^= 2;
  ExpectFailure(a, b, read, IBV_WC_REM_ACCESS_ERR, std::nullopt);
  auto [c, d] = ConnectedPair();
  SendWork write = Write(c, d, 1, 64);
  write.sge.lkey ^= 2;
  write.wr.wr.rdma.rkey ^= 2;
  ExpectFailure(c, d, write, IBV_WC_LOC_PROT_ERR, std::nullopt);
}

TEST_P(ErrorPairTest, RequestsBeforeTheBadOneSucceed) {
  auto [a, b] = ConnectedPair();
  for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(PostReceive(b, i, 64), 0);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(Post(a, Send(a, i, 64)), 0);
  SendWork bad = Write(a, b, 4, 64);
  bad.wr.wr.rdma.rkey ^= 1;
  ASSERT_EQ(Post(a, bad), 0);
  // Posted at once behind it: never executed, whether they were sent or not.
  for (uint64_t i = 5; i < 8; ++i) ASSERT_EQ(Post(a, Send(a, i, 64)), 0);
  const auto sends = WaitFor(a.send_cq, 8);
  const auto receives = WaitFor(b.recv_cq, 8);
  ASSERT_EQ(sends.size() + receives.size(), 16U);
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(sends[i].wr_id, i);
    EXPECT_EQ(sends[i].status, i < 4    ? IBV_WC_SUCCESS
                               : i == 4 ? IBV_WC_REM_ACCESS_ERR
                                        : IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(receives[i].wr_id, i);
    EXPECT_EQ(receives[i].status, i < 4 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
  }
}

TEST_P(ErrorPairTest, SendWithInvalidateFailsTheReceiverOnly) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  SendWork work = Send(a, 2, 64);
  work.wr.opcode = IBV_WR_SEND_WITH_INV;
  work.wr.invalidate_rkey = b.mr->rkey;
  ASSERT_EQ(Post(a, work), 0);
  EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_REM_INV_REQ_ERR);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS) << "no NAK (IBTA class J)";
  EXPECT_EQ(StateOf(b), IBV_QPS_ERR);
  EXPECT_EQ(StateOf(a), IBV_QPS_RTS);
}

INSTANTIATE_TEST_SUITE_P(, ErrorPairTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
