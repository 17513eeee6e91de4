// Completions that lie, come out of order or never come, by both ways of polling and with events.
#include <arpa/inet.h>

#include <cerrno>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

constexpr CompletionKind kReceive = CompletionKind::kReceive;
constexpr CompletionKind kSend = CompletionKind::kSend;

class CompletionFaultsTest : public DeviceTest {
 protected:
  void Open(std::vector<CompletionFault> faults) {
    SoftOptions options;
    options.hooks.completions = std::move(faults);
    OpenDevices(options);
  }
  // A message, and the receive that takes it.
  static void SendOne(End& a, End& b, uint64_t id) {
    ASSERT_EQ(PostReceive(b, id, 64), 0);
    ASSERT_EQ(Post(a, SendImmediate(a, id, 16, ::htonl(0x01020304))), 0);
  }
  // Wait by ibv_start_poll, with the fields that a receive has.
  static ibv_wc WaitExtended(End& end) {
    ibv_cq_ex* cq = end.device->Extended(end.recv_cq);
    ibv_poll_cq_attr attributes = {};
    const Deadline deadline = Soon();
    int result = ENOENT;
    while ((result = ibv_start_poll(cq, &attributes)) == ENOENT && !deadline.Passed()) {
    }
    EXPECT_EQ(result, 0);
    ibv_wc wc = {};
    wc.wr_id = cq->wr_id;
    wc.status = cq->status;
    wc.opcode = ibv_wc_read_opcode(cq);
    wc.byte_len = ibv_wc_read_byte_len(cq);
    wc.imm_data = ibv_wc_read_imm_data(cq);
    wc.wc_flags = ibv_wc_read_wc_flags(cq);
    ibv_end_poll(cq);
    return wc;
  }
  static void Arm(ibv_cq* cq) { EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0); }
};

TEST_P(CompletionFaultsTest, EachFieldCanLieHoweverItIsPolled) {
  std::vector<CompletionFault> faults;
  for (uint64_t first = 1; first <= 8; first += 7) {
    faults.push_back({.nth = first, .kind = kReceive, .imm_xor = 0x80000000});
    faults.push_back({.nth = first + 1, .kind = kReceive, .imm_swap = true});
    faults.push_back({.nth = first + 2, .kind = kReceive, .drop_imm_flag = true});
    faults.push_back({.nth = first + 3, .kind = kReceive, .byte_len_add = -1});
    faults.push_back({.nth = first + 4, .kind = kReceive, .byte_len = 0});
    faults.push_back({.nth = first + 5, .kind = kReceive, .opcode = IBV_WC_RECV_RDMA_WITH_IMM});
    faults.push_back({.nth = first + 6, .kind = kReceive, .wr_id_xor = 0x100});
  }
  Open(faults);
  auto [a, b] = ConnectedPair();
  for (const bool extended : {false, true}) {
    std::vector<ibv_wc> got;
    for (uint64_t i = 0; i < 7; ++i) {
      SendOne(a, b, i);
      EXPECT_EQ(Wait(a.send_cq).wr_id, i);
      got.push_back(extended ? WaitExtended(b) : Wait(b.recv_cq));
      EXPECT_EQ(got[i].status, IBV_WC_SUCCESS);
      EXPECT_EQ(got[i].wr_id, i == 6 ? 0x106U : i);
      EXPECT_EQ(got[i].byte_len, i == 3 ? 15U : i == 4 ? 0U : 16U);
      EXPECT_EQ(got[i].opcode, i == 5 ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
      EXPECT_EQ(got[i].wc_flags, i == 2 ? 0U : static_cast<unsigned>(IBV_WC_WITH_IMM));
      const uint32_t number = i == 0 ? 0x81020304 : i == 1 ? 0x04030201 : 0x01020304;
      EXPECT_EQ(::ntohl(got[i].imm_data), number);
    }
  }
}

TEST_P(CompletionFaultsTest, ANumberOfAnotherQpStaysACompletionOfItsOwn) {
  Open({{.nth = 0, .kind = kReceive, .qp_num_xor = 1},
        {.nth = 2, .kind = kReceive, .hold_behind = true}});
  auto [a, b] = ConnectedPair();
  const uint32_t number = b.qp->qp_num;
  for (uint64_t i = 1; i <= 3; ++i) {
    SendOne(a, b, i);
    EXPECT_EQ(Wait(a.send_cq).qp_num, a.qp->qp_num);
  }
  for (const ibv_wc& wc : WaitFor(b.recv_cq, 3)) EXPECT_EQ(wc.qp_num, number ^ 1);
  // One that is not polled goes with its QP, whatever it says.
  SendOne(a, b, 4);
  EXPECT_EQ(Wait(a.send_cq).wr_id, 4U);
  b.qp = {};
  ExpectEmpty(b.recv_cq);
}

TEST_P(CompletionFaultsTest, ADroppedReceiveGivesItsSlotBack) {
  Open({{.nth = 0, .kind = kReceive, .drop = true}});
  auto [a, b] = ConnectedPair({}, {.max_recv_wr = 2});
  for (uint64_t i = 0; i < 20; ++i) {
    SendOne(a, b, i);
    EXPECT_EQ(Wait(a.send_cq).wr_id, i);
  }
  ExpectEmpty(b.recv_cq);
  // What is flushed at the end is dropped too.
  ASSERT_EQ(PostReceive(b, 1, 8), 0);
  ASSERT_TRUE(ToState(b, IBV_QPS_ERR));
  ExpectEmpty(b.recv_cq);
}

TEST_P(CompletionFaultsTest, ADroppedSendGivesAllSlotsBackThatItCovers) {
  Open({{.nth = 0, .kind = kSend, .drop = true}});
  auto [a, b] = ConnectedPair({.max_send_wr = 4}, {});
  for (uint64_t i = 0; i < 30; ++i) {
    ASSERT_EQ(PostReceive(b, i, 64), 0);
    SendWork work = Send(a, i, 8);
    if (i % 2 == 0) work.wr.send_flags = 0;
    const Deadline deadline = Soon();
    int result = ENOMEM;
    while ((result = Post(a, work)) == ENOMEM && !deadline.Passed()) ExpectEmpty(a.send_cq);
    ASSERT_EQ(result, 0);
    EXPECT_EQ(Wait(b.recv_cq).wr_id, i);
  }
  ExpectEmpty(a.send_cq);
}

TEST_P(CompletionFaultsTest, ADroppedReceiveOfASharedQueueGivesItsSlotBack) {
  Open({{.nth = 0, .kind = kReceive, .drop = true}});
  End memory = MakeEnd(second());
  Srq srq = Must(second().CreateSrq({.pd = memory.pd.get(), .max_wr = 2, .max_sge = 4}));
  {
    auto [a, b] = ConnectedPair({}, {.srq = srq.get()});
    for (uint64_t i = 0; i < 10; ++i) {
      ASSERT_EQ(PostSharedReceive(srq.get(), memory, i, 64), 0);
      ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
      EXPECT_EQ(Wait(a.send_cq).wr_id, i);
    }
    ExpectEmpty(b.recv_cq);
  }
  EXPECT_TRUE(srq.Close());
}

TEST_P(CompletionFaultsTest, AHeldOneComesBehindTheNext) {
  Open({{.nth = 2, .kind = kReceive, .hold_behind = true},
        {.nth = 5, .kind = kReceive, .hold_behind = true},
        {.nth = 6, .kind = kReceive, .hold_behind = true}});
  auto [a, b] = ConnectedPair({}, {.cqe = 7});
  for (uint64_t i = 1; i <= 7; ++i) {
    SendOne(a, b, i);
    EXPECT_EQ(Wait(a.send_cq).wr_id, i);
  }
  std::vector<uint64_t> order;
  for (const ibv_wc& wc : WaitFor(b.recv_cq, 7)) order.push_back(wc.wr_id);
  EXPECT_EQ(order, (std::vector<uint64_t>{1, 3, 2, 4, 6, 5, 7}));
}

TEST_P(CompletionFaultsTest, AHeldOneThatNoneFollowsGoesWithItsQueuePair) {
  Open({{.nth = 1, .kind = kReceive, .hold_behind = true}});
  auto [a, b] = ConnectedPair({}, {.max_recv_wr = 1});
  SendOne(a, b, 1);
  EXPECT_EQ(Wait(a.send_cq).wr_id, 1U);
  ExpectEmpty(b.recv_cq);
  EXPECT_EQ(PostReceive(b, 2, 64), ENOMEM) << "its slot is taken until it comes";
  ASSERT_TRUE(ToState(a, IBV_QPS_RESET));
  ASSERT_TRUE(ToState(b, IBV_QPS_RESET));
  ASSERT_TRUE(Connect(a, b));
  SendOne(a, b, 3);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 3U);
  ExpectEmpty(b.recv_cq);
}

TEST_P(CompletionFaultsTest, WhatDoesNotComeRaisesNoEvent) {
  Open({{.nth = 1, .kind = kReceive, .drop = true},
        {.nth = 3, .kind = kReceive, .hold_behind = true}});
  auto [a, b] = ConnectedPair({}, {.channel = true});
  SetNonBlocking(b.channel.get());
  const auto event = [&end = b] {
    const Expected<ibv_cq*> cq = end.device->GetCqEvent(end.channel.get());
    EXPECT_TRUE(cq);
    if (*cq != nullptr) end.device->AckCqEvents(*cq, 1);
    return *cq != nullptr;
  };
  Arm(b.recv_cq);
  for (uint64_t i = 1; i <= 4; ++i) {
    SendOne(a, b, i);
    EXPECT_EQ(Wait(a.send_cq).wr_id, i);
    const bool comes = i % 2 == 0;
    EXPECT_EQ(event(), comes) << i;
    if (!comes) continue;
    EXPECT_EQ(Wait(b.recv_cq).wr_id, i);
    if (i == 4) {
      EXPECT_EQ(Wait(b.recv_cq).wr_id, 3U);
    }
    ExpectEmpty(b.recv_cq);
    Arm(b.recv_cq);
  }
}

INSTANTIATE_TEST_SUITE_P(, CompletionFaultsTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
