// Hooks of the device for the timing of completion events (EventTiming).
#include <cerrno>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

using std::chrono::milliseconds;

class EventTimingTest : public DeviceTest {
 protected:
  std::pair<End, End> Ends(const EventTiming& timing) {
    SoftOptions options;
    options.hooks.events = timing;
    OpenDevices(options);
    auto ends = ConnectedPair({.channel = true}, {.channel = true});
    SetNonBlocking(ends.second.channel.get());
    return ends;
  }
  static void Arm(ibv_cq* cq) { EXPECT_EQ(ibv_req_notify_cq(cq, 0), 0); }
  static ibv_cq* TakeEvent(End& end) {
    const Expected<ibv_cq*> cq = end.device->GetCqEvent(end.channel.get());
    EXPECT_TRUE(cq);
    if (*cq != nullptr) end.device->AckCqEvents(*cq, 1);
    return *cq;
  }
  // Both ends must be free of what is hidden, so the sender's completion is polled without a wait.
  static void SendOne(End& a, End& b, uint64_t id) {
    ASSERT_EQ(PostReceive(b, id, 8), 0);
    SendWork work = Send(a, id, 8);
    work.wr.send_flags = 0;
    ASSERT_EQ(Post(a, work), 0);
  }
  static uint64_t Received(Device& device) { return Counter(device, "rdma_sends"); }
};

TEST_P(EventTimingTest, LateEventsComeAfterTheirCompletions) {
  auto [a, b] = Ends({.late = milliseconds(50)});
  Arm(b.recv_cq);
  SendOne(a, b, 1);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
  EXPECT_EQ(TakeEvent(b), nullptr) << "the completion was there first";
  EXPECT_TRUE(Readable(b.channel->fd, milliseconds(20000)));
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  EXPECT_EQ(TakeEvent(b), nullptr);
}

TEST_P(EventTimingTest, ABlockingReadWaitsForALateEvent) {
  auto [a, b] = Ends({.late = milliseconds(20)});
  CompChannel channel = Must(a.device->CreateCompChannel());
  Arm(a.recv_cq);
  SendOne(b, a, 1);
  const Expected<ibv_cq*> event = a.device->GetCqEvent(a.channel.get());
  ASSERT_TRUE(event);
  EXPECT_EQ(*event, a.recv_cq);
  a.device->AckCqEvents(*event, 1);
  EXPECT_EQ(Wait(a.recv_cq).wr_id, 1U);
}

TEST_P(EventTimingTest, AQueueCanGoWithALateEventOutstanding) {
  auto [a, b] = Ends({.late = std::chrono::hours(1)});
  Arm(b.recv_cq);
  SendOne(a, b, 1);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
  EXPECT_TRUE(b.qp.Close());
  EXPECT_TRUE(b.recv_cq_owner.Close());
  EXPECT_EQ(TakeEvent(b), nullptr);
}

TEST_P(EventTimingTest, CoalescedEventsStandForSeveralArms) {
  auto [a, b] = Ends({.coalesce = true});
  for (uint64_t i = 1; i <= 5; ++i) {
    Arm(b.recv_cq);
    SendOne(a, b, i);
    EXPECT_EQ(Wait(b.recv_cq).wr_id, i);
  }
  EXPECT_TRUE(Readable(b.channel->fd));
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
  EXPECT_EQ(TakeEvent(b), nullptr);
  EXPECT_FALSE(Readable(b.channel->fd));
  Arm(b.recv_cq);
  SendOne(a, b, 6);
  Wait(b.recv_cq);
  EXPECT_EQ(TakeEvent(b), b.recv_cq) << "a new event after the old one was taken";
}

TEST_P(EventTimingTest, ACompletionBetweenPollAndArmIsFoundByAPollAfterTheArmOnly) {
  auto [a, b] = Ends({.between_poll_and_arm = true});
  for (uint64_t i = 1; i <= 5; ++i) {
    const uint64_t before = Received(*b.device);
    SendOne(a, b, i);
    ASSERT_TRUE(AwaitUntil([&b = b, before] { return Received(*b.device) == before + 1; }));
    ExpectEmpty(b.recv_cq);
    Arm(b.recv_cq);
    EXPECT_EQ(TakeEvent(b), nullptr) << "it comes without an event";
    EXPECT_FALSE(Readable(b.channel->fd));
    EXPECT_EQ(Wait(b.recv_cq).wr_id, i);
    // The arm still holds: the next completion raises its event, and is there.
    SendOne(a, b, 100 + i);
    EXPECT_TRUE(Readable(b.channel->fd, milliseconds(20000)));
    EXPECT_EQ(TakeEvent(b), b.recv_cq);
    EXPECT_EQ(Wait(b.recv_cq).wr_id, 100 + i);
  }
}

TEST_P(EventTimingTest, OnlyTheNewestCompletionIsHeldBackAndOrderIsKept) {
  auto [a, b] = Ends({.between_poll_and_arm = true});
  const uint64_t before = Received(*b.device);
  for (uint64_t i = 1; i <= 4; ++i) SendOne(a, b, i);
  ASSERT_TRUE(AwaitUntil([&b = b, before] { return Received(*b.device) == before + 4; }));
  for (uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(Wait(b.recv_cq).wr_id, i);
  ExpectEmpty(b.recv_cq);
  SendOne(a, b, 5);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 4U) << "a newer one takes its place";
  ExpectEmpty(b.recv_cq);
  Arm(b.recv_cq);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 5U);
}

TEST_P(EventTimingTest, AQueueWithoutAChannelIsNeverHeldBack) {
  SoftOptions options;
  options.hooks.events.between_poll_and_arm = true;
  OpenDevices(options);
  auto [a, b] = ConnectedPair();
  SendOne(a, b, 1);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
}

TEST_P(EventTimingTest, AProgramThatPollsAfterArmingNeverWaitsInVain) {
  auto [a, b] = Ends({.between_poll_and_arm = true});
  End& receiver = a;  // its channel blocks
  for (uint64_t i = 1; i <= 30; ++i) {
    SendOne(b, receiver, i);
    ibv_wc wc = {};
    bool got = ibv_poll_cq(receiver.recv_cq, 1, &wc) == 1;
    while (!got) {
      Arm(receiver.recv_cq);
      if (ibv_poll_cq(receiver.recv_cq, 1, &wc) == 1) break;
      const Expected<ibv_cq*> event = receiver.device->GetCqEvent(receiver.channel.get());
      ASSERT_TRUE(event && *event != nullptr);
      receiver.device->AckCqEvents(*event, 1);
      got = ibv_poll_cq(receiver.recv_cq, 1, &wc) == 1;
    }
    EXPECT_EQ(wc.wr_id, i);
    // An arm that was not used up may leave an event behind; it is taken like any other.
  }
}

INSTANTIATE_TEST_SUITE_P(, EventTimingTest, kIbtaDevices, DeviceParam::NameOf);

class ModerationTest : public EventTimingTest {};

TEST_P(ModerationTest, AnEventWaitsForItsCount) {
  auto [a, b] = Ends({});
  ASSERT_TRUE(b.device->ModerateCq(b.recv_cq, 3, 0));
  Arm(b.recv_cq);
  for (uint64_t i = 1; i <= 2; ++i) {
    SendOne(a, b, i);
    Wait(b.recv_cq);
    EXPECT_EQ(TakeEvent(b), nullptr);
  }
  SendOne(a, b, 3);
  Wait(b.recv_cq);
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
}

TEST_P(ModerationTest, OrForItsPeriod) {
  auto [a, b] = Ends({});
  ASSERT_TRUE(b.device->ModerateCq(b.recv_cq, 100, 20000));
  Arm(b.recv_cq);
  SendOne(a, b, 1);
  Wait(b.recv_cq);
  EXPECT_EQ(TakeEvent(b), nullptr);
  EXPECT_TRUE(Readable(b.channel->fd, milliseconds(20000)));
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
}

TEST_P(ModerationTest, EndingItReleasesWhatWasHeldBack) {
  auto [a, b] = Ends({});
  ASSERT_TRUE(b.device->ModerateCq(b.recv_cq, 100, 0));
  Arm(b.recv_cq);
  SendOne(a, b, 1);
  Wait(b.recv_cq);
  EXPECT_EQ(TakeEvent(b), nullptr);
  ASSERT_TRUE(b.device->ModerateCq(b.recv_cq, 0, 0));
  EXPECT_TRUE(Readable(b.channel->fd, milliseconds(20000)));
  EXPECT_EQ(TakeEvent(b), b.recv_cq);
}

INSTANTIATE_TEST_SUITE_P(, ModerationTest, kIbtaDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
