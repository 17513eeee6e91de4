// Completion events: when they come, when they do not, and how a program waits for them.
#include <cerrno>
#include <thread>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

constexpr EndOptions kWithChannel = {.channel = true};

class EventTest : public DeviceTest {
 protected:
  static void Arm(ibv_cq* cq, bool solicited = false) {
    EXPECT_EQ(ibv_req_notify_cq(cq, solicited ? 1 : 0), 0);
  }
  // The event that is there, acknowledged; null when there is none. The channel must not block.
  static ibv_cq* TakeEvent(End& end) {
    errno = 0;
    const Expected<ibv_cq*> cq = end.device->GetCqEvent(end.channel.get());
    EXPECT_TRUE(cq);
    if (*cq != nullptr) {
      end.device->AckCqEvents(*cq, 1);
    } else {
      EXPECT_EQ(errno, EAGAIN);
    }
    return *cq;
  }
  // Neither to see nor to take, before and after.
  static void ExpectNoEvent(End& end) {
    EXPECT_FALSE(Readable(end.channel->fd));
    EXPECT_EQ(TakeEvent(end), nullptr);
    EXPECT_FALSE(Readable(end.channel->fd));
  }
  // One message from `a` to `b`, received by polling.
  static void Deliver(End& a, End& b, unsigned flags = 0) {
    ASSERT_EQ(PostReceive(b, 1, 8), 0);
    SendWork work = Send(a, 2, 8);
    work.wr.send_flags |= flags;
    ASSERT_EQ(Post(a, work), 0);
    EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  }
  std::pair<End, End> Ends() {
    auto ends = ConnectedPair({}, kWithChannel);
    SetNonBlocking(ends.second.channel.get());
    return ends;
  }
};

TEST_P(EventTest, OneArmOneEvent) {
  auto [a, b] = Ends();
  Arm(b.recv_cq);
  for (int i = 0; i < 3; ++i) Deliver(a, b);
  EXPECT_TRUE(Readable(b.channel->fd));
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  ExpectNoEvent(b);
  Arm(b.recv_cq);
  Deliver(a, b);
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  ExpectNoEvent(b);
}

TEST_P(EventTest, WithoutArmingThereIsNone) {
  auto [a, b] = Ends();
  for (int i = 0; i < 3; ++i) Deliver(a, b);
  ExpectNoEvent(b);
}

TEST_P(EventTest, ArmingAfterEverythingWasPolledGivesNone) {
  auto [a, b] = Ends();
  for (int i = 0; i < 3; ++i) {
    Deliver(a, b);
    Arm(b.recv_cq);
    ExpectNoEvent(b);
    Deliver(a, b);
    EXPECT_EQ(TakeEvent(b), b.recv_cq);
    ExpectNoEvent(b);
  }
}

TEST_P(EventTest, CompletionsThatAreThereWhenArmingGiveNone) {
  auto [a, b] = Ends();
  ASSERT_EQ(PostReceive(b, 1, 8), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 8)), 0);
  Wait(a.send_cq);
  Arm(b.recv_cq);
  ExpectNoEvent(b);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U) << "the poll after the arm finds it";
}

TEST_P(EventTest, SolicitedArmingWaitsForASolicitedMessageOrAnError) {
  auto [a, b] = Ends();
  Arm(b.recv_cq, /*solicited=*/true);
  Deliver(a, b);
  ExpectNoEvent(b);
  Deliver(a, b, IBV_SEND_SOLICITED);
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  Arm(b.recv_cq, /*solicited=*/true);
  ASSERT_EQ(PostReceive(b, 1, 8), 0);
  ASSERT_EQ(Post(a, WriteImmediate(a, b, 2, 8, 5)), 0);
  Wait(b.recv_cq);
  ExpectNoEvent(b);
  ASSERT_EQ(PostReceive(b, 1, 4), 0);
  ASSERT_EQ(Post(a, Send(a, 2, 8)), 0);
  EXPECT_NE(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
}

TEST_P(EventTest, SolicitedWakesAnArmForAnyToo) {
  auto [a, b] = Ends();
  Arm(b.recv_cq);
  Deliver(a, b, IBV_SEND_SOLICITED);
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  ExpectNoEvent(b);
}

TEST_P(EventTest, AnArmIsNeverDowngradedAndCanBeUpgraded) {
  auto [a, b] = Ends();
  Arm(b.recv_cq);
  Arm(b.recv_cq, /*solicited=*/true);
  Deliver(a, b);
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  Arm(b.recv_cq, /*solicited=*/true);
  Arm(b.recv_cq);
  Deliver(a, b);
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  ExpectNoEvent(b);
}

TEST_P(EventTest, ReArmingBeforeTheEventIsTakenLosesNothing) {
  auto [a, b] = Ends();
  for (int i = 0; i < 5; ++i) {
    Arm(b.recv_cq);
    Deliver(a, b);
  }
  int events = 0;
  while (TakeEvent(b) != nullptr) ++events;
  EXPECT_EQ(events, 5);
  ExpectNoEvent(b);
}

TEST_P(EventTest, EveryOperationCompletesWithAnEventAtItsRequester) {
  auto [a, b] = ConnectedPair(kWithChannel, {});
  SetNonBlocking(a.channel.get());
  for (const SendWork& work : {Write(a, b, 1, 64), Read(a, b, 2, 64), FetchAdd(a, b, 3, 1),
                               CompareSwap(a, b, 4, 0, 1), Send(a, 5, 64)}) {
    ASSERT_EQ(PostReceive(b, 1, 64), 0);
    Arm(a.send_cq);
    ASSERT_EQ(Post(a, work), 0);
    EXPECT_TRUE(Readable(a.channel->fd, std::chrono::seconds(20))) << work.wr.wr_id;
    EXPECT_EQ(TakeEvent(a), a.send_cq);
    EXPECT_EQ(Wait(a.send_cq).wr_id, work.wr.wr_id);
  }
}

TEST_P(EventTest, ArmingNeedsAChannel) {
  auto [a, b] = Ends();
  errno = 0;
  EXPECT_EQ(ibv_req_notify_cq(a.send_cq, 0), EINVAL);
  EXPECT_EQ(errno, EINVAL);
}

TEST_P(EventTest, OneChannelTellsItsQueuesApart) {
  auto [a, b] = Ends();
  int cookie = 0;
  Cq other = Must(b.device->CreateCq({.cqe = 8, .channel = b.channel.get(), .context = &cookie}));
  Arm(b.recv_cq);
  Arm(b.send_cq);
  Deliver(a, b);
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  Deliver(b, a);
  EXPECT_EQ(TakeEvent(b), b.send_cq);
  ExpectNoEvent(b);
  EXPECT_EQ(other->cq_context, &cookie);
  EXPECT_EQ(other->channel, b.channel.get());
}

TEST_P(EventTest, AnEventOfTheReceiveSideSpendsTheArmOfBothSides) {
  // One CQ for both: when the receive has raised the event, the ACK of a send must raise nothing.
  auto [a, b] = ConnectedPair({}, {.channel = true, .one_cq = true});
  SetNonBlocking(b.channel.get());
  for (int i = 0; i < 20; ++i) {
    Arm(b.recv_cq);
    Deliver(a, b);
    EXPECT_EQ(TakeEvent(b), b.recv_cq);
    Deliver(b, a);
    ExpectNoEvent(b);
  }
}

TEST_P(EventTest, EventsMustBeAcknowledgedBeforeTheQueueGoes) {
  auto [a, b] = Ends();
  Arm(b.recv_cq);
  Deliver(a, b);
  const Expected<ibv_cq*> event = b.device->GetCqEvent(b.channel.get());
  ASSERT_TRUE(event);
  ASSERT_TRUE(b.qp.Close());
  errno = 0;
  const Status busy = b.recv_cq_owner.Close();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().errno_value, EBUSY);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_NE(busy.error().cause.find("1 events are not acknowledged"), std::string::npos);
  b.device->AckCqEvents(*event, 1);
  EXPECT_TRUE(b.recv_cq_owner.Close());
}

TEST_P(EventTest, EventsThatNobodyTookGoWithTheirQueue) {
  auto [a, b] = Ends();
  Arm(b.recv_cq);
  Deliver(a, b);
  EXPECT_TRUE(Readable(b.channel->fd));
  ASSERT_TRUE(b.qp.Close());
  ASSERT_TRUE(b.recv_cq_owner.Close());
  ExpectNoEvent(b);
}

TEST_P(EventTest, NothingIsRaisedForAQpThatWasReset) {
  auto [a, b] = Ends();
  Arm(b.recv_cq);
  ASSERT_TRUE(ToState(b, IBV_QPS_RESET));
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_RETRY_EXC_ERR);
  ExpectNoEvent(b);
}

TEST_P(EventTest, ABlockingReadReturnsAtTheNextMessage) {
  auto [a, b] = ConnectedPair({}, kWithChannel);
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(PostReceive(b, 1, 8), 0);
    Arm(b.recv_cq);
    std::thread sender([&a = a] { EXPECT_EQ(Post(a, Send(a, 2, 8)), 0); });
    const Expected<ibv_cq*> event = b.device->GetCqEvent(b.channel.get());
    sender.join();
    ASSERT_TRUE(event);
    EXPECT_EQ(*event, b.recv_cq);
    b.device->AckCqEvents(*event, 1);
    EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
    EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
  }
}

TEST_P(EventTest, TheSenderWakesASleeperInPollItself) {
  if (udp()) GTEST_SKIP() << "the helper wakes it";
  auto [a, b] = Ends();
  AwaitDirectWake(a, b);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(PostReceive(b, 1, 8), 0);
    Arm(b.recv_cq);
    const uint64_t woken = Counter(first(), "peer_channels_woken");
    std::thread sender([&a = a] { EXPECT_EQ(Post(a, Send(a, 2, 8)), 0); });
    EXPECT_TRUE(Readable(b.channel->fd, std::chrono::seconds(20)));
    sender.join();
    EXPECT_EQ(Counter(first(), "peer_channels_woken"), woken + 1);
    EXPECT_EQ(TakeEvent(b), b.recv_cq);
    EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
    EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
  }
}

TEST_P(EventTest, BothEndsInOneThreadTakeTurns) {
  auto [a, b] = ConnectedPair(kWithChannel, kWithChannel);
  for (End* end : {&a, &b}) {
    for (uint64_t i = 0; i < 32; ++i) ASSERT_EQ(PostReceive(*end, i, 8), 0);
  }
  End* from = &a;
  End* to = &b;
  for (int i = 0; i < 40; ++i) {
    Arm(to->recv_cq);
    ASSERT_EQ(Post(*from, Send(*from, 1, 8)), 0);
    const Expected<ibv_cq*> event = to->device->GetCqEvent(to->channel.get());
    ASSERT_TRUE(event);
    EXPECT_EQ(*event, to->recv_cq);
    to->device->AckCqEvents(*event, 1);
    EXPECT_EQ(Wait(to->recv_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(Wait(from->send_cq).status, IBV_WC_SUCCESS);
    std::swap(from, to);
  }
}

TEST_P(EventTest, AThousandArmedRoundsLeaveAtLeastOneEvent) {
  auto [a, b] = ConnectedPair(kWithChannel, {});
  SetNonBlocking(a.channel.get());
  for (int i = 0; i < 1000; ++i) {
    Arm(a.send_cq);
    ASSERT_EQ(Post(a, Write(a, b, 1, 8)), 0);
    Wait(a.send_cq);
  }
  int events = 0;
  while (TakeEvent(a) != nullptr) ++events;
  EXPECT_EQ(events, 1000);
  EXPECT_FALSE(Readable(a.channel->fd));
}

TEST_P(EventTest, ManyPairsOnOneChannelEachNameTheirQueue) {
  CompChannel channel = Must(second().CreateCompChannel());
  SetNonBlocking(channel.get());
  std::vector<std::pair<End, End>> pairs;
  pairs.reserve(20);
  std::vector<Cq> cqs;
  std::vector<Qp> qps;
  for (int i = 0; i < 20; ++i) {
    pairs.push_back(ConnectedPair());
    End& b = pairs.back().second;
    cqs.push_back(Must(second().CreateCq({.cqe = 8, .channel = channel.get(), .context = &b})));
    verbscope::QpOptions qp = {.pd = b.pd.get(), .send_cq = b.send_cq, .recv_cq = cqs.back().get()};
    qp.max_recv_wr = 4;
    ASSERT_TRUE(b.qp.Close());
    b.qp = std::move(Must(second().CreateQp(qp)).qp);
    b.recv_cq = cqs.back().get();
    ASSERT_TRUE(ToState(pairs.back().first, IBV_QPS_RESET));
    ASSERT_TRUE(Connect(pairs.back().first, b));
    ASSERT_EQ(PostReceive(b, 1, 8), 0);
    Arm(b.recv_cq);
  }
  for (auto& [a, b] : pairs) {
    ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
    EXPECT_TRUE(Readable(channel->fd, std::chrono::seconds(20)));
    const Expected<ibv_cq*> event = second().GetCqEvent(channel.get());
    ASSERT_TRUE(event);
    EXPECT_EQ(*event, b.recv_cq);
    second().AckCqEvents(*event, 1);
    EXPECT_EQ((*event)->cq_context, &b);
    Wait(b.recv_cq);
    Wait(a.send_cq);
  }
  for (auto& [a, b] : pairs) ASSERT_TRUE(b.qp.Close());
  cqs.clear();
}

INSTANTIATE_TEST_SUITE_P(, EventTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
