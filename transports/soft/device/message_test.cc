// What arrives: immediate data, messages of no bytes, messages of many packets.
#include <algorithm>
#include <array>
#include <cstring>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kImmediate = 0x12345678;

class ImmediateTest : public DeviceTest {};

TEST_P(ImmediateTest, SendDeliversItUnchanged) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ASSERT_EQ(Post(a, SendImmediate(a, 2, 10, kImmediate)), 0);
  const ibv_wc receive = Wait(b.recv_cq);
  EXPECT_EQ(receive.status, IBV_WC_SUCCESS);
  EXPECT_EQ(receive.opcode, IBV_WC_RECV);
  EXPECT_EQ(receive.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(receive.imm_data, kImmediate);
  EXPECT_EQ(receive.byte_len, 10U);
  EXPECT_EQ(Wait(a.send_cq).opcode, IBV_WC_SEND);
}

TEST_P(ImmediateTest, WriteConsumesOneReceiveWhoseMemoryStaysUntouched) {
  auto [a, b] = ConnectedPair();
  for (const uint32_t bytes : {0U, 1U, 1024U, 5000U}) {
    ASSERT_EQ(PostReceive(b, 1, 8, 32768), 0);
    const auto data = Pattern(bytes, bytes + 1);
    std::copy(data.begin(), data.end(), a.at(0));
    std::memset(b.at(32768), 0x33, 8);
    ASSERT_EQ(Post(a, WriteImmediate(a, b, 2, bytes, kImmediate)), 0);
    const ibv_wc receive = Wait(b.recv_cq);
    EXPECT_EQ(receive.status, IBV_WC_SUCCESS);
    EXPECT_EQ(receive.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(receive.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
    EXPECT_EQ(receive.imm_data, kImmediate);
    EXPECT_EQ(receive.byte_len, bytes);
    EXPECT_EQ(receive.wr_id, 1U);
    EXPECT_TRUE(std::equal(data.begin(), data.end(), b.at(0)));
    EXPECT_EQ(b.at(32768)[0], std::byte{0x33});
    EXPECT_EQ(Wait(a.send_cq).opcode, IBV_WC_RDMA_WRITE);
    ExpectEmpty(b.recv_cq);
  }
}

TEST_P(ImmediateTest, WriteIntoAReceiveOfNoMemoryWorks) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 0), 0);
  ASSERT_EQ(Post(a, WriteImmediate(a, b, 2, 4096, kImmediate)), 0);
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 4096U);
}

TEST_P(ImmediateTest, WriteWithABadKeyFailsTheReceiveToo) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 8), 0);
  SendWork work = WriteImmediate(a, b, 2, 64, kImmediate);
  work.wr.wr.rdma.rkey ^= 1;
  ASSERT_EQ(Post(a, work), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_LOC_ACCESS_ERR);
}

TEST_P(ImmediateTest, PlainWriteTellsTheTargetNothing) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ASSERT_EQ(Post(a, Write(a, b, 2, 64)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  ExpectEmpty(b.recv_cq);
}

INSTANTIATE_TEST_SUITE_P(, ImmediateTest, kAllDevices, DeviceParam::NameOf);

class ZeroLengthTest : public DeviceTest {};

TEST_P(ZeroLengthTest, SendsOfNothingConsumeAReceive) {
  auto [a, b] = ConnectedPair();
  for (const bool with_sge : {false, true}) {
    ASSERT_EQ(PostReceive(b, 1, with_sge ? 64 : 0), 0);
    SendWork work = Send(a, 2, 0);
    work.sge.lkey = 0xbad;  // a length of 0 touches no memory
    work.wr.num_sge = with_sge ? 1 : 0;
    ASSERT_EQ(Post(a, work), 0);
    const ibv_wc receive = Wait(b.recv_cq);
    EXPECT_EQ(receive.status, IBV_WC_SUCCESS);
    EXPECT_EQ(receive.byte_len, 0U);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  }
}

TEST_P(ZeroLengthTest, WritesAndReadsOfNothingCheckNoKey) {
  auto [a, b] = ConnectedPair();
  for (const bool with_sge : {false, true}) {
    for (SendWork work : {Write(a, b, 1, 0), Read(a, b, 1, 0)}) {
      work.wr.num_sge = with_sge ? 1 : 0;
      work.wr.wr.rdma.rkey = 0xdead;
      work.wr.wr.rdma.remote_addr = 1;
      ASSERT_EQ(Post(a, work), 0);
      EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    }
  }
  EXPECT_EQ(StateOf(b), IBV_QPS_RTS);
}

TEST_P(ZeroLengthTest, DataIntoAReceiveOfNothingIsALengthError) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 0), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 1)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, expected().too_long_requester);
  EXPECT_EQ(Wait(b.recv_cq).status, expected().too_long_responder);
  EXPECT_EQ(StateOf(a), IBV_QPS_ERR);
  EXPECT_EQ(StateOf(b), IBV_QPS_ERR);
}

TEST_P(ZeroLengthTest, EmptySgesAmongOthersAreSkipped) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  std::array<ibv_sge, 3> sges = {};
  sges[0] = {.addr = 1, .length = 0, .lkey = 0xbad};
  sges[1] = {.addr = a.address(), .length = 40, .lkey = a.mr->lkey};
  sges[2] = sges[0];
  SendWork work = Send(a, 2, 0);
  work.wr.sg_list = sges.data();
  work.wr.num_sge = 3;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(a.qp.get(), &work.wr, &bad), 0);
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 40U);
}

INSTANTIATE_TEST_SUITE_P(, ZeroLengthTest, kAllDevices, DeviceParam::NameOf);

class MtuTest : public DeviceTest {
 protected:
  static constexpr size_t kBytes = 1 << 20;
};

TEST_P(MtuTest, MessagesAreCutIntoPacketsOfThePathMtu) {
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    const uint32_t bytes = 128U << mtu;
    auto [a, b] = ConnectedPair({.bytes = kBytes}, {.bytes = kBytes}, {.mtu = mtu});
    for (const uint32_t length : {bytes - 1, bytes, bytes + 1, 4 * bytes, 4 * bytes + 1}) {
      const auto data = Pattern(length, length);
      std::memcpy(a.at(0), data.data(), length);
      std::memset(b.at(0), 0, length);
      ASSERT_EQ(PostReceive(b, 1, length), 0);
      const uint64_t before = Counter(second(), "rcvd_pkts");
      ASSERT_EQ(Post(a, Send(a, 2, length)), 0);
      EXPECT_EQ(Wait(b.recv_cq).byte_len, length);
      EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
      if (!GetParam().one_device) {
        EXPECT_EQ(Counter(second(), "rcvd_pkts") - before, (length + bytes - 1) / bytes);
      }
      EXPECT_EQ(std::memcmp(b.at(0), data.data(), length), 0);
    }
  }
}

TEST_P(MtuTest, LargeMessagesArriveWholeByEveryOperation) {
  auto [a, b] = ConnectedPair({.bytes = kBytes}, {.bytes = kBytes}, {.mtu = IBV_MTU_256});
  const auto length = static_cast<uint32_t>(kBytes);
  for (int op = 0; op < 3; ++op) {
    const auto data = Pattern(length, static_cast<uint32_t>(op));
    std::memcpy((op == 2 ? b : a).at(0), data.data(), length);
    std::memset((op == 2 ? a : b).at(0), 0, length);
    if (op == 0) {
      ASSERT_EQ(PostReceive(b, 1, length), 0);
    }
    ASSERT_EQ(Post(a, op == 0   ? Send(a, 2, length)
                      : op == 1 ? Write(a, b, 2, length)
                                : Read(a, b, 2, length)),
              0);
    const ibv_wc done = Wait(a.send_cq);
    EXPECT_EQ(done.status, IBV_WC_SUCCESS);
    if (op == 0) {
      EXPECT_EQ(Wait(b.recv_cq).byte_len, length);
    }
    EXPECT_EQ(std::memcmp((op == 2 ? a : b).at(0), data.data(), length), 0);
  }
}

TEST_P(MtuTest, DataIsGatheredAndScatteredAcrossPackets) {
  auto [a, b] = ConnectedPair({}, {}, {.mtu = IBV_MTU_256});
  const auto data = Pattern(1000, 5);
  std::memcpy(a.at(0), data.data(), data.size());
  std::array<ibv_sge, 3> from = {{{a.address(0), 1, a.mr->lkey},
                                  {a.address(1), 700, a.mr->lkey},
                                  {a.address(701), 299, a.mr->lkey}}};
  std::array<ibv_sge, 3> to = {{{b.address(0), 300, b.mr->lkey},
                                {b.address(1000), 3, b.mr->lkey},
                                {b.address(2000), 2000, b.mr->lkey}}};
  ibv_recv_wr receive = {.wr_id = 1, .next = nullptr, .sg_list = to.data(), .num_sge = 3};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_EQ(ibv_post_recv(b.qp.get(), &receive, &bad_receive), 0);
  SendWork work = Send(a, 2, 0);
  work.wr.sg_list = from.data();
  work.wr.num_sge = 3;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(a.qp.get(), &work.wr, &bad), 0);
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 1000U);
  EXPECT_EQ(std::memcmp(b.at(0), data.data(), 300), 0);
  EXPECT_EQ(std::memcmp(b.at(1000), data.data() + 300, 3), 0);
  EXPECT_EQ(std::memcmp(b.at(2000), data.data() + 303, 697), 0);
}

TEST_P(MtuTest, APathMtuAboveThePortsIsRefused) {
  SoftOptions options;
  options.port.active_mtu_bytes = 1024;
  OpenDevices(options);
  End a = MakeEnd(first());
  End b = MakeEnd(second());
  ASSERT_TRUE(ToInit(a));
  const Status refused = ToRtr(a, b, {.mtu = IBV_MTU_2048});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("path MTU 2048"), std::string::npos);
  EXPECT_TRUE(ToRtr(a, b, {.mtu = IBV_MTU_1024}));
}

INSTANTIATE_TEST_SUITE_P(, MtuTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
