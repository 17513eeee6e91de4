// Defects of states, limits, asynchronous events and destruction; and all of them under traffic.
#include <algorithm>
#include <cerrno>

#include "transports/soft/device/defect_fixture.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kBytes = 64;

class DefectControlTest : public DefectTest {
 protected:
  static bool Moves(End& end, ibv_qp_attr attributes, int mask) {
    return end.device->ModifyQp(end.qp.get(), attributes, mask, "test").has_value();
  }
  static bool Has(const std::vector<std::string>& events, std::string_view event) {
    return std::ranges::find(events, event) != events.end();
  }
  static void ExpectWorks(End& a, End& b) {
    ASSERT_EQ(PostReceive(b, 1, kBytes), 0);
    ASSERT_EQ(Post(a, Send(a, 2, kBytes)), 0);
    EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  }
};

TEST_P(DefectControlTest, AnyTransition) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kAnyTransition);
    End end = MakeEnd(first());
    const ibv_qp_attr init = InitAttributes();
    EXPECT_EQ(Moves(end, init, IBV_QP_STATE), broken) << "without what INIT needs";
    ASSERT_TRUE(ToState(end, IBV_QPS_RESET));
    EXPECT_EQ(Moves(end, RtsAttributes(), kRtsMask), broken) << "RESET to RTS";
    EXPECT_EQ(StateOf(end), broken ? IBV_QPS_RTS : IBV_QPS_RESET);
    if (!broken) continue;
    for (const ibv_qp_state state : {IBV_QPS_SQE, IBV_QPS_UNKNOWN}) {
      ibv_qp_attr none = {};
      none.qp_state = state;
      EXPECT_FALSE(Moves(end, none, IBV_QP_STATE));
    }
  }
}

// Nothing that is under way is touched with the numbers of the next connection.
TEST_P(DefectControlTest, AnyTransitionGoesBackAndForthWithRequestsWaiting) {
  Open(true, Defect::kAnyTransition);
  auto [a, b] =
      ConnectedPair({.max_inline_bytes = kBytes}, {}, {.mtu = IBV_MTU_256, .rnr_retry = 7});
  for (int i = 0; i < 8; ++i) {
    SendWork work = i % 2 == 0 ? Send(a, 1, 3000) : Read(a, b, 2, 3000);
    ASSERT_EQ(Post(a, work), 0);
  }
  const ConnectOptions larger = {.mtu = IBV_MTU_4096, .psn = 77};
  ASSERT_TRUE(ToInit(a, larger));
  ASSERT_TRUE(ToRtr(a, b, larger));
  ASSERT_TRUE(ToRts(a, larger));
  ExpectEmpty(b.recv_cq);
  for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_SQD, IBV_QPS_INIT, IBV_QPS_RTS, IBV_QPS_ERR,
                                   IBV_QPS_RTS, IBV_QPS_RTR, IBV_QPS_RTS}) {
    ASSERT_TRUE(ToState(a, state));
    ibv_wc wc = {};
    for (int i = 0; i < 100; ++i) ASSERT_GE(ibv_poll_cq(a.send_cq, 1, &wc), 0);
    for (int i = 0; i < 100; ++i) ASSERT_GE(ibv_poll_cq(b.recv_cq, 1, &wc), 0);
  }
  ASSERT_TRUE(ToState(a, IBV_QPS_RESET));
  ASSERT_TRUE(ToState(b, IBV_QPS_RESET));
  ASSERT_TRUE(Connect(a, b));
  ExpectWorks(a, b);
}

TEST_P(DefectControlTest, NoAsync) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kNoAsync);
    auto [a, b] = ConnectedPair();
    SendWork wrong = Write(a, b, 1, kBytes);
    wrong.wr.wr.rdma.rkey ^= 1;
    ASSERT_EQ(Post(a, wrong), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
    const std::vector<std::string> events = AsyncEvents(*b.device);
    EXPECT_EQ(Has(events, "QP_ACCESS_ERR"), !broken);
    if (broken) {
      EXPECT_TRUE(events.empty());
    }
  }
}

TEST_P(DefectControlTest, NoSrqLimit) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kNoSrqLimit);
    End memory = MakeEnd(second());
    const Srq srq = Must(second().CreateSrq({.pd = memory.pd.get(), .max_wr = 4, .max_sge = 1}));
    auto [a, b] = ConnectedPair({}, {.srq = srq.get()});
    for (uint64_t i = 0; i < 2; ++i) ASSERT_EQ(PostSharedReceive(srq.get(), memory, i, kBytes), 0);
    ASSERT_TRUE(second().SetSrqLimit(srq.get(), 2));
    ASSERT_EQ(Post(a, Send(a, 1, kBytes)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    const std::vector<std::string> events = AsyncEvents(second());
    EXPECT_EQ(Has(events, "SRQ_LIMIT_REACHED"), !broken);
  }
}

TEST_P(DefectControlTest, BusyDestroy) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kBusyDestroy);
    auto [a, b] = ConnectedPair({.channel = true}, {});
    EXPECT_EQ(a.pd.Close().has_value(), broken);
    EXPECT_EQ(a.channel.Close().has_value(), broken);
    EXPECT_EQ(a.send_cq_owner.Close().has_value(), broken);
    ExpectWorks(a, b);
  }
}

// What is only said to be destroyed goes with its last user: the device does not fill up.
TEST_P(DefectControlTest, BusyDestroyKeepsNothingForEver) {
  SoftOptions options;
  options.limits.device.max_pd = options.limits.device.max_cq = 8;
  Open(true, Defect::kBusyDestroy, options);
  for (int i = 0; i < 20; ++i) {
    auto [a, b] = ConnectedPair({.channel = true}, {});
    for (End* end : {&a, &b}) {
      EXPECT_TRUE(end->pd.Close());
      EXPECT_TRUE(end->channel.Close());
      EXPECT_TRUE(end->send_cq_owner.Close());
      EXPECT_TRUE(end->recv_cq_owner.Close());
    }
    ExpectWorks(a, b);
  }
}

TEST_P(DefectControlTest, UnackedDestroy) {
  for (const bool broken : {false, true}) {
    Open(broken, Defect::kUnackedDestroy);
    auto [a, b] = ConnectedPair({.channel = true}, {});
    ASSERT_EQ(ibv_req_notify_cq(a.send_cq, 0), 0);
    ASSERT_EQ(Post(a, Write(a, b, 1, kBytes)), 0);
    const Expected<ibv_cq*> event = a.device->GetCqEvent(a.channel.get());
    ASSERT_TRUE(event);
    ASSERT_EQ(*event, a.send_cq);
    a.qp = {};
    EXPECT_EQ(a.send_cq_owner.Close().has_value(), broken);
    a.device->AckCqEvents(*event, 1);  // harmless when the CQ is gone
  }
}

TEST_P(DefectControlTest, OverstatedLimits) {
  for (const bool broken : {false, true}) {
    SoftOptions options;
    options.limits.device.max_cqe = 64;
    options.limits.device.max_qp_wr = 32;
    options.limits.device.max_sge = 4;
    Open(broken, Defect::kOverstatedLimits, options);
    const DeviceLimits& limits = first().info().limits;
    EXPECT_EQ(limits.max_cqe, broken ? 128U : 64U);
    EXPECT_EQ(first().CreateCq({.cqe = static_cast<uint32_t>(limits.max_cqe)}).has_value(),
              !broken);
    const Pd pd = Must(first().AllocatePd());
    const Cq cq = Must(first().CreateCq({.cqe = 64}));
    const auto made = [&](uint32_t wr, uint32_t sge) {
      verbscope::QpOptions qp;
      qp.pd = pd.get();
      qp.send_cq = qp.recv_cq = cq.get();
      qp.max_send_wr = qp.max_recv_wr = wr;
      qp.max_send_sge = qp.max_recv_sge = sge;
      return first().CreateQp(qp).has_value();
    };
    EXPECT_TRUE(made(32, 4));
    EXPECT_EQ(made(limits.max_qp_wr, 1), !broken);
    EXPECT_EQ(made(1, limits.max_sge), !broken);
  }
}

// Every defect, under each operation and an error at the end: nothing crashes, hangs or stays.
TEST_P(DefectControlTest, EveryOneSurvivesTraffic) {
  for (const DefectRow& row : kDefects) {
    SCOPED_TRACE(row.name);
    Open(true, row.defect);
    auto [a, b] = ConnectedPair({.channel = true, .max_inline_bytes = kBytes}, {.channel = true});
    EXPECT_EQ(ibv_req_notify_cq(a.send_cq, 0), 0);
    EXPECT_EQ(ibv_req_notify_cq(b.recv_cq, 1), 0);
    for (uint64_t i = 0; i < 40; ++i) {
      EXPECT_EQ(PostReceive(b, i, 4096), 0);
      SendWork small = SendImmediate(a, i, kBytes, 1);
      small.wr.send_flags |= IBV_SEND_INLINE | IBV_SEND_SOLICITED | IBV_SEND_FENCE;
      const SendWork works[] = {small, Send(a, i, 3000), Write(a, b, i, 5000), Read(a, b, i, 5000),
                                FetchAdd(a, b, i, 1)};
      EXPECT_EQ(Post(a, works[i % 5]), 0);
      EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    }
    SendWork wrong = Write(a, b, 99, kBytes);
    wrong.wr.wr.rdma.rkey ^= 1;
    EXPECT_EQ(Post(a, wrong), 0);
    EXPECT_EQ(Post(a, Send(a, 100, kBytes)), 0);
    ibv_wc wc = {};
    EXPECT_TRUE(AwaitUntil([&] {
      return ibv_poll_cq(a.send_cq, 1, &wc) >= 0 && ibv_poll_cq(b.recv_cq, 1, &wc) >= 0 &&
             StateOf(a) == IBV_QPS_ERR;
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(, DefectControlTest, kIbtaDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
