// Defects of posting, of completions and of their events.
#include <algorithm>
#include <array>
#include <cerrno>

#include "transports/soft/device/defect_fixture.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kBytes = 64;

class DefectQueueTest : public DefectTest {};

TEST_P(DefectQueueTest, WrongBadWr) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kWrongBadWr);
    auto [a, b] = ConnectedPair();
    const Srq srq = Must(b.device->CreateSrq({.pd = b.pd.get(), .max_wr = 8, .max_sge = 1}));
    std::array<SendWork, 3> sends = {Send(a, 1, 0), Send(a, 2, 0), Send(a, 3, 0)};
    std::array<ibv_recv_wr, 3> receives = {};
    for (size_t i = 0; i < 3; ++i) {
      sends[i].wr.num_sge = i == 1 ? 99 : 0;
      sends[i].wr.next = i < 2 ? &sends[i + 1].wr : nullptr;
      receives[i].num_sge = i == 1 ? 99 : 0;
      receives[i].next = i < 2 ? &receives[i + 1] : nullptr;
    }
    const size_t named = broken ? 0 : 1;
    ibv_send_wr* bad_send = nullptr;
    EXPECT_EQ(ibv_post_send(a.qp.get(), &sends[0].wr, &bad_send), EINVAL);
    EXPECT_EQ(bad_send, &sends[named].wr);
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(ibv_post_recv(b.qp.get(), receives.data(), &bad), EINVAL);
    EXPECT_EQ(bad, &receives[named]);
    EXPECT_EQ(ibv_post_srq_recv(srq.get(), receives.data(), &bad), EINVAL);
    EXPECT_EQ(bad, &receives[named]);
  }
}

TEST_P(DefectQueueTest, SignalAll) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kSignalAll);
    auto [a, b] = ConnectedPair();
    ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
    SendWork silent = Send(a, 2, kBytes);
    silent.wr.send_flags = 0;
    ASSERT_EQ(Post(a, silent), 0);
    ASSERT_EQ(Post(a, Write(a, b, 3, kBytes)), 0);
    EXPECT_EQ(Wait(a.send_cq).wr_id, broken ? 2U : 3U);
  }
}

TEST_P(DefectQueueTest, SolicitedWakesNot) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kSolicitedWakesNot);
    auto [a, b] = ConnectedPair({}, {.channel = true});
    SetNonBlocking(b.channel.get());
    ASSERT_EQ(ibv_req_notify_cq(b.recv_cq, 1), 0);
    ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
    ASSERT_EQ(Post(a, Send(a, 2, kBytes)), 0);
    EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
    EXPECT_EQ(EventOf(b), broken ? b.recv_cq : nullptr);
  }
}

TEST_P(DefectQueueTest, StaysArmed) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kStaysArmed);
    auto [a, b] = ConnectedPair({}, {.channel = true});
    SetNonBlocking(b.channel.get());
    ASSERT_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
    for (const bool first : {true, false}) {
      ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
      ASSERT_EQ(Post(a, Send(a, 2, kBytes)), 0);
      EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
      EXPECT_EQ(EventOf(b), first || broken ? b.recv_cq : nullptr);
      EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
    }
  }
}

TEST_P(DefectQueueTest, ForeignEvent) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kForeignEvent);
    auto [a, b] = ConnectedPair({}, {.channel = true});
    SetNonBlocking(b.channel.get());
    ASSERT_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
    ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
    ASSERT_EQ(Post(a, Send(a, 2, kBytes)), 0);
    EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
    EXPECT_EQ(EventOf(b), broken ? b.send_cq : b.recv_cq);
    EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
  }
}

TEST_P(DefectQueueTest, NoFlush) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kNoFlush);
    auto [a, b] = ConnectedPair({.max_send_wr = 4}, {.max_recv_wr = 2});
    ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
    ASSERT_TRUE(ToState(b, IBV_QPS_ERR));
    ASSERT_TRUE(ToState(a, IBV_QPS_ERR));
    if (!broken) {
      EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_WR_FLUSH_ERR);
      continue;
    }
    // Their places in the queues are free.
    for (uint64_t i = 0; i < 20; ++i) {
      EXPECT_EQ(PostReceive(b, i, kBytes), 0);
      EXPECT_EQ(Post(a, Send(a, i, kBytes)), 0);
    }
    ExpectEmpty(b.recv_cq);
    ExpectEmpty(a.send_cq);
  }
}

TEST_P(DefectQueueTest, NoFlushStillSaysWhatFailed) {
  Open(true, Defect::kNoFlush);
  auto [a, b] = ConnectedPair();
  SendWork wrong = Write(a, b, 1, kBytes);
  wrong.wr.wr.rdma.rkey ^= 1;
  ASSERT_EQ(Post(a, wrong), 0);
  ASSERT_EQ(Post(a, Write(a, b, 2, kBytes)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
  ExpectEmpty(a.send_cq);
}

TEST_P(DefectQueueTest, RnrGivesUpNever) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kRnrGivesUpNever);
    auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 1});
    ASSERT_EQ(Post(a, Send(a, 1, kBytes)), 0);
    if (!broken) {
      EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
      continue;
    }
    EXPECT_TRUE(PollUntil(a.send_cq, [&a = a] { return Counter(*a.device, "rcvd_rnr_err") > 5; }));
    ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  }
}

TEST_P(DefectQueueTest, SilentOverrun) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kSilentOverrun);
    auto [a, b] = ConnectedPair({}, {.cqe = 2});
    for (uint64_t i = 0; i < 3; ++i) {
      ASSERT_EQ(PostReceive(b, i, kBytes), 0);
      ASSERT_EQ(Post(a, Send(a, i, kBytes)), 0);
      EXPECT_EQ(Wait(a.send_cq).wr_id, i);
    }
    const std::vector<std::string> events = AsyncEvents(*b.device);
    EXPECT_EQ(std::ranges::find(events, "CQ_ERR") == events.end(), broken);
    EXPECT_EQ(StateOf(b), broken ? IBV_QPS_RTS : IBV_QPS_ERR);
    if (!broken) continue;
    EXPECT_EQ(Wait(b.recv_cq).wr_id, 0U);
    EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
    ExpectEmpty(b.recv_cq);
  }
}

TEST_P(DefectQueueTest, EarlyCompletion) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kEarlyCompletion);
    auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 0});
    ASSERT_EQ(Post(a, Send(a, 1, kBytes)), 0);  // there is no receive
    EXPECT_EQ(Wait(a.send_cq).status, broken ? IBV_WC_SUCCESS : IBV_WC_RNR_RETRY_EXC_ERR);
    ASSERT_TRUE(PollUntil(a.send_cq, [&a = a] { return StateOf(a) == IBV_QPS_ERR; }));
    ExpectEmpty(a.send_cq);
  }
}

// Slots are free before their requests are answered, also behind READs.
TEST_P(DefectQueueTest, EarlyCompletionsStayInOrder) {
  Open(true, Defect::kEarlyCompletion);
  auto [a, b] = ConnectedPair({.max_send_wr = 3}, {});
  uint64_t posted = 0;
  uint64_t completed = 0;
  ibv_wc wc = {};
  const Deadline deadline = Soon();
  while (completed < 3000 && !deadline.Passed()) {
    while (posted < completed + 3 && posted < 3000) {
      SendWork work = posted % 7 == 3 ? Read(a, b, posted, kBytes) : Write(a, b, posted, kBytes);
      ASSERT_EQ(Post(a, work), 0) << posted;
      ++posted;
    }
    const int got = ibv_poll_cq(a.send_cq, 1, &wc);
    ASSERT_GE(got, 0);
    if (got == 0) continue;
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    ASSERT_EQ(wc.wr_id, completed++);
  }
  EXPECT_EQ(completed, 3000U);
}

TEST_P(DefectQueueTest, WrongStatus) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kWrongStatus);
    auto [a, b] = ConnectedPair();
    ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
    ASSERT_EQ(Post(a, Send(a, 2, kBytes + 1)), 0);
    EXPECT_EQ(Wait(b.recv_cq).status, broken ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_REM_INV_REQ_ERR);
  }
}

INSTANTIATE_TEST_SUITE_P(, DefectQueueTest, kIbtaDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
