// A device makes progress whether or not its program does: one-sided requests are served, retries
// made and messages received with nobody polling.
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class ProgressTest : public DeviceTest {};

TEST_P(ProgressTest, OneSidedRequestsAreServedByATargetThatDoesNothing) {
  auto [a, b] = ConnectedPair();
  for (int round = 0; round < 20; ++round) {
    const auto data = Pattern(8000, static_cast<uint32_t>(round));
    std::memcpy(a.at(0), data.data(), data.size());
    ASSERT_EQ(Post(a, Write(a, b, 1, 8000)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(b.at(0), data.data(), data.size()), 0);
    std::memset(a.at(0), 0, data.size());
    ASSERT_EQ(Post(a, Read(a, b, 2, 8000)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(a.at(0), data.data(), data.size()), 0);
    ASSERT_EQ(Post(a, FetchAdd(a, b, 3, 1)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  }
}

TEST_P(ProgressTest, MessagesAreReceivedAndAcknowledgedWithNobodyPolling) {
  auto [a, b] = ConnectedPair();
  for (uint64_t i = 0; i < 50; ++i) ASSERT_EQ(PostReceive(b, i, 2000), 0);
  for (uint64_t i = 0; i < 50; ++i) ASSERT_EQ(Post(a, Send(a, i, 2000)), 0);
  EXPECT_EQ(WaitFor(a.send_cq, 50).size(), 50U);
  EXPECT_EQ(WaitFor(b.recv_cq, 50).size(), 50U);
}

TEST_P(ProgressTest, NeitherEndNeedsToPollForTheOthersSake) {
  auto [a, b] = ConnectedPair({.cqe = 64}, {.cqe = 64});
  for (uint64_t i = 0; i < 20; ++i) ASSERT_EQ(Post(a, Write(a, b, i, 60000)), 0);
  // 1200 packets and more than any ring holds.
  EXPECT_TRUE(AwaitUntil([this] { return Counter(second(), "rcvd_pkts") >= 20 * 59; }));
  EXPECT_EQ(WaitFor(a.send_cq, 20).size(), 20U);
}

TEST_P(ProgressTest, AnIdleDeviceSleeps) {
  auto [a, b] = ConnectedPair();
  ASSERT_EQ(Post(a, Write(a, b, 1, 8)), 0);
  Wait(a.send_cq);
  // Its helper looks in a few times and then only now and then: it may not spin.
  uint64_t last = Counter(second(), "helper_wakeups");
  bool slept = false;
  for (int i = 0; i < 200 && !slept; ++i) {
    EXPECT_TRUE(AsyncEvents(second(), std::chrono::milliseconds(10)).empty());
    const uint64_t now = Counter(second(), "helper_wakeups");
    slept = now - last <= 2;
    last = now;
  }
  EXPECT_TRUE(slept);
}

TEST_P(ProgressTest, PollingFromOneThreadAndPostingFromAnotherWorks) {
  auto [a, b] = ConnectedPair({.cqe = 4096}, {.cqe = 4096, .max_recv_wr = 4096});
  constexpr uint64_t kMessages = 3000;
  for (uint64_t i = 0; i < 4000; ++i) ASSERT_EQ(PostReceive(b, i, 64), 0);
  std::thread sender([&a = a] {
    for (uint64_t i = 0; i < kMessages; ++i) {
      while (Post(a, Send(a, i, 64)) == ENOMEM) ::sched_yield();
    }
  });
  std::thread receiver([&b = b] {
    const auto wcs = WaitFor(b.recv_cq, kMessages);
    for (uint64_t i = 0; i < wcs.size(); ++i) EXPECT_EQ(wcs[i].wr_id, i);
  });
  const auto wcs = WaitFor(a.send_cq, kMessages);
  for (uint64_t i = 0; i < wcs.size(); ++i) EXPECT_EQ(wcs[i].wr_id, i);
  sender.join();
  receiver.join();
}

TEST_P(ProgressTest, ANewPeerIsTakenInDuringEndlessTraffic) {
  // The streams of two devices keep the target busy without a pause.
  auto [a, b] = ConnectedPair({.cqe = 256}, {});
  SoftOptions mine;
  mine.profile = GetParam().profile;
  mine.link = GetParam().link;
  const auto third = OpenDevice(mine);
  End c = MakeEnd(*third, {.cqe = 256});
  End d = MakeEnd(second());
  ASSERT_TRUE(Connect(c, d));
  std::atomic<bool> stop = false;
  const auto stream = [&stop](End& from, const End& to) {
    std::array<ibv_wc, 16> wcs;
    while (!stop) {
      while (Post(from, Write(from, to, 1, 64)) == 0) {
      }
      if (ibv_poll_cq(from.send_cq, 16, wcs.data()) > 0) {
        EXPECT_EQ(wcs[0].status, IBV_WC_SUCCESS);
      }
    }
    while (ibv_poll_cq(from.send_cq, 16, wcs.data()) > 0) {
    }
  };
  std::thread one([&, &a = a, &b = b] { stream(a, b); });
  std::thread two([&] { stream(c, d); });
  for (int i = 0; i < 10; ++i) {
    const auto fresh = OpenDevice(mine);
    End e = MakeEnd(*fresh);
    End f = MakeEnd(second());
    ASSERT_TRUE(Connect(e, f));
    EXPECT_EQ(Post(e, Write(e, f, 1, 64)), 0);
    EXPECT_EQ(Wait(e.send_cq).status, IBV_WC_SUCCESS);
    e.Close();
  }
  stop = true;
  one.join();
  two.join();
  c.Close();
}

TEST_P(ProgressTest, LostPacketsAreRepeated) {
  SoftOptions options;
  options.fault.drop = 0.1;
  OpenDevices(options);
  auto [a, b] = ConnectedPair({}, {}, {.retry_cnt = 7});
  for (uint64_t i = 0; i < 30; ++i) {
    const auto data = Pattern(5000, static_cast<uint32_t>(i));
    std::memcpy(a.at(0), data.data(), data.size());
    std::memset(b.at(0), 0, data.size());
    ASSERT_EQ(PostReceive(b, i, 5000), 0);
    ASSERT_EQ(Post(a, Send(a, i, 5000)), 0);
    ASSERT_EQ(Wait(b.recv_cq).byte_len, 5000U);
    ASSERT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(std::memcmp(b.at(0), data.data(), data.size()), 0);
  }
  EXPECT_GT(Counter(first(), "completer_retry_err"), 0U);
}

TEST_P(ProgressTest, ASleeperIsWokenByTheRepetitionOfALostMessage) {
  SoftOptions options;
  // The receiver loses some transmissions, after their sender woke it: the only ones of this
  // length.
  options.fault.rules.push_back({.direction = FaultDirection::kReceive,
                                 .packets = FaultClass::kSend,
                                 .min_bytes = 100,
                                 .hits = 3});
  OpenDevices(options);
  auto [a, b] = ConnectedPair({}, {.channel = true}, {.timeout = 12});
  if (!udp()) AwaitDirectWake(a, b);
  const uint64_t woken = Counter(first(), "peer_channels_woken");
  ASSERT_EQ(PostReceive(b, 1, 200), 0);
  ASSERT_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 200)), 0);
  const Expected<ibv_cq*> event = b.device->GetCqEvent(b.channel.get());
  ASSERT_TRUE(event);
  EXPECT_EQ(*event, b.recv_cq);
  b.device->AckCqEvents(*event, 1);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  // Three times in vain, and once more: the sleeper asks again whenever it was woken for nothing.
  const uint64_t expected_wakes = udp() ? 0 : 4;
  EXPECT_EQ(Counter(first(), "peer_channels_woken") - woken, expected_wakes);
}

INSTANTIATE_TEST_SUITE_P(, ProgressTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
