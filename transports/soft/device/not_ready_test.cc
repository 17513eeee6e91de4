// Peers that are not ready (no receive posted) and peers that are not there.
#include <array>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class NotReadyTest : public DeviceTest {};

TEST_P(NotReadyTest, WithoutAReceiveTheRetriesRunOut) {
  for (const bool immediate_write : {false, true}) {
    auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 2});
    const uint64_t naks = Counter(second(), "send_rnr_err");
    const uint64_t seen = Counter(first(), "rcvd_rnr_err");
    const uint64_t given_up = Counter(first(), "retry_rnr_exceeded_err");
    ASSERT_EQ(Post(a, immediate_write ? WriteImmediate(a, b, 1, 8, 7) : Send(a, 1, 8)), 0);
    ASSERT_EQ(Post(a, Send(a, 2, 8)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
    // The first transmission and two more, each answered once.
    EXPECT_EQ(Counter(second(), "send_rnr_err") - naks, 3U);
    EXPECT_EQ(Counter(first(), "rcvd_rnr_err") - seen, 3U);
    EXPECT_EQ(Counter(first(), "retry_rnr_exceeded_err") - given_up, 1U);
    EXPECT_EQ(StateOf(a), IBV_QPS_ERR);
    EXPECT_EQ(StateOf(b), IBV_QPS_RTS) << "the responder did nothing wrong";
    ExpectEmpty(b.recv_cq);
  }
}

TEST_P(NotReadyTest, WithoutRetriesTheFirstNakIsTheEnd) {
  auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 0});
  const uint64_t naks = Counter(second(), "send_rnr_err");
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RNR_RETRY_EXC_ERR);
  EXPECT_EQ(Counter(second(), "send_rnr_err") - naks, 1U);
}

TEST_P(NotReadyTest, SevenIsForEverUntilAReceiveComes) {
  auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 7});
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  ASSERT_TRUE(PollUntil(a.send_cq, [&] { return Counter(first(), "rcvd_rnr_err") >= 20; }));
  EXPECT_EQ(StateOf(a), IBV_QPS_RTS);
  ASSERT_EQ(PostReceive(b, 2, 8), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 2U);
}

TEST_P(NotReadyTest, LateReceivesServeEverySendOnceAndInOrder) {
  auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 7});
  for (uint64_t i = 0; i < 16; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  for (uint64_t i = 0; i < 32; ++i) ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
  const auto early = WaitFor(a.send_cq, 16);
  ASSERT_TRUE(PollUntil(a.send_cq, [&] { return Counter(second(), "send_rnr_err") > 0; }));
  for (uint64_t i = 16; i < 32; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  const auto late = WaitFor(a.send_cq, 16);
  ASSERT_EQ(late.size(), 16U);
  const auto receives = WaitFor(b.recv_cq, 32);
  for (uint64_t i = 0; i < 32; ++i) {
    EXPECT_EQ((i < 16 ? early[i] : late[i - 16]).wr_id, i);
    EXPECT_EQ(receives[i].wr_id, i);
    EXPECT_EQ(receives[i].status, IBV_WC_SUCCESS);
  }
}

TEST_P(NotReadyTest, SixteenOfThirtyTwoSucceedWhenTheRetriesEnd) {
  auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 1});
  for (uint64_t i = 0; i < 16; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  for (uint64_t i = 0; i < 32; ++i) ASSERT_EQ(Post(a, Send(a, i, 8)), 0);
  const auto sends = WaitFor(a.send_cq, 32);
  for (size_t i = 0; i < sends.size(); ++i) {
    EXPECT_EQ(sends[i].status, i < 16    ? IBV_WC_SUCCESS
                               : i == 16 ? IBV_WC_RNR_RETRY_EXC_ERR
                                         : IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_EQ(WaitFor(b.recv_cq, 16).size(), 16U);
}

TEST_P(NotReadyTest, EachTimerCodeIsHonouredAtLeastInOrder) {
  // Two QPs that wait for the same time with different codes: the shorter one is retried first.
  auto [a, b] = ConnectedPair({}, {}, {.rnr_retry = 7, .min_rnr_timer = 1});
  auto [c, d] = ConnectedPair({}, {}, {.rnr_retry = 1, .min_rnr_timer = 0});  // 655 ms
  ASSERT_EQ(Post(c, Send(c, 1, 8)), 0);
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  const uint64_t given_up = Counter(first(), "retry_rnr_exceeded_err");
  const uint64_t naks = Counter(first(), "rcvd_rnr_err");
  ASSERT_TRUE(PollUntil(a.send_cq, [&] { return Counter(first(), "rcvd_rnr_err") >= naks + 10; }));
  EXPECT_EQ(Counter(first(), "retry_rnr_exceeded_err"), given_up);
  ASSERT_EQ(PostReceive(d, 1, 8), 0);
  ASSERT_TRUE(ToState(a, IBV_QPS_ERR));
  EXPECT_EQ(Wait(c.send_cq).status, IBV_WC_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(, NotReadyTest, kAllDevices, DeviceParam::NameOf);

class DeadPeerTest : public DeviceTest {};

TEST_P(DeadPeerTest, WorkToAnEndThatIsGoneRunsOutOfRetries) {
  auto [a, b] = ConnectedPair({}, {}, {.timeout = 8, .retry_cnt = 2});  // 1 ms
  const uint64_t timeouts = Counter(first(), "local_ack_timeout_err");
  b.Close();
  if (!GetParam().one_device) CloseSecond();
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 8)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(Counter(first(), "local_ack_timeout_err") - timeouts, 3U);
  EXPECT_EQ(StateOf(a), IBV_QPS_ERR);
}

TEST_P(DeadPeerTest, ItIsNoticedWithNobodyPolling) {
  auto [a, b] = ConnectedPair({}, {}, {.timeout = 8, .retry_cnt = 1});
  b.Close();
  if (!GetParam().one_device) CloseSecond();
  ASSERT_EQ(Post(a, Write(a, a, 1, 8)), 0);
  EXPECT_TRUE(AwaitUntil([&a = a] { return StateOf(a) == IBV_QPS_ERR; }));
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_P(DeadPeerTest, AnEndThatIsNotReadyOrInErrorIsAsGone) {
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_ERR}) {
    auto [a, b] = ConnectedPair({}, {}, {.timeout = 8, .retry_cnt = 1});
    ASSERT_TRUE(ToState(b, state));
    const auto dropped = [this] {
      return Counter(second(), "dropped_state") + Counter(second(), "wrong_source");
    };
    const uint64_t before = dropped();
    ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
    // Over UDP an end that lost its path by RESET does not even look.
    if (udp() && state == IBV_QPS_RESET) continue;
    EXPECT_TRUE(AwaitUntil([&] { return dropped() - before == 2; }));
  }
}

TEST_P(DeadPeerTest, ARetryCountOfSevenEndsExceptUnderRxe) {
  auto [a, b] = ConnectedPair({}, {}, {.timeout = 5, .retry_cnt = 7});  // 131 us
  ASSERT_TRUE(ToState(b, IBV_QPS_ERR));
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  if (expected().retry_7_is_forever) {
    EXPECT_TRUE(
        PollUntil(a.send_cq, [&] { return Counter(first(), "local_ack_timeout_err") >= 20; }));
    EXPECT_EQ(StateOf(a), IBV_QPS_RTS);
  } else {
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(Counter(first(), "local_ack_timeout_err"), 8U);
  }
}

TEST_P(DeadPeerTest, AWrongQueuePairNumberIsAsGone) {
  End a = MakeEnd(first());
  End b = MakeEnd(second());
  const ConnectOptions options = {.timeout = 8, .retry_cnt = 1};
  ASSERT_TRUE(ToInit(a));
  const auto blob = b.device->PeerBlob(b.qp.get());
  ASSERT_TRUE(a.device->AcceptPeerBlob(a.qp.get(), blob));
  ibv_qp_attr rtr = RtrAttributes(*a.device, *b.qp.get(), {}, b.device);
  rtr.dest_qp_num = 0xabcdef;
  ASSERT_TRUE(a.device->ModifyQp(a.qp.get(), rtr, kRtrMask, "INIT to RTR"));
  ASSERT_TRUE(ToRts(a, options));
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
  // Over UDP an end without a path does not even look.
  if (udp() && !GetParam().one_device) return;
  EXPECT_TRUE(AwaitUntil([this] { return Counter(second(), "unknown_qpn") == 2; }));
}

TEST_P(DeadPeerTest, AReopenedDeviceIsANewPeer) {
  if (GetParam().one_device) GTEST_SKIP() << "the peer is this device";
  auto [a, b] = ConnectedPair({}, {}, {.timeout = 8, .retry_cnt = 1});
  b.Close();
  CloseSecond();
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
  SoftOptions options;
  options.profile = GetParam().profile;
  options.link = GetParam().link;
  const auto again = OpenDevice(options);
  End c = MakeEnd(*again);
  ASSERT_TRUE(ToState(a, IBV_QPS_RESET));
  ASSERT_TRUE(Connect(a, c));
  ASSERT_EQ(PostReceive(c, 1, 8), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 8)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  c.Close();
}

INSTANTIATE_TEST_SUITE_P(, DeadPeerTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
