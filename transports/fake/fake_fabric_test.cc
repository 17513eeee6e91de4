// Completion queues, events and the hooks that make trouble.
#include "transports/fake/fake_fabric.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "transports/fake/fake_test_util.h"

namespace verbscope {
namespace {

// Whether the end's channel has an unread event.
bool HasEvent(const FakeEnd& end) {
  pollfd wait = {.fd = end.channel->fd, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, /*timeout=*/0) == 1;
}

// Takes and acknowledges one event; it must be there.
ibv_cq* TakeEvent(const FakeEnd& end) {
  ibv_cq* cq = Must(end.device->GetCqEvent(end.channel.get()));
  end.device->AckCqEvents(cq, 1);
  return cq;
}

void Arm(const Cq& cq, int solicited_only = 0) {
  ASSERT_EQ(ibv_req_notify_cq(cq.get(), solicited_only), 0);
}

// One message from a to b, receive posted first.
void Message(FakePair& pair, unsigned flags = IBV_SEND_SIGNALED) {
  ASSERT_EQ(Recv(pair.b, 0, 8), 0);
  ASSERT_EQ(Send(pair.a, 1, 0, flags), 0);
}

ibv_wc WcOf(uint64_t wr_id, ibv_wc_status status = IBV_WC_SUCCESS) {
  ibv_wc wc = {};
  wc.wr_id = wr_id;
  wc.status = status;
  return wc;
}

TEST(FakeEvents, ArmingIsOneShotAndNamesTheCq) {
  FakePair pair;
  Message(pair);
  EXPECT_FALSE(HasEvent(pair.b)) << "not armed";
  Arm(pair.b.recv_cq);
  EXPECT_FALSE(HasEvent(pair.b)) << "a completion was there already when arming";
  Message(pair);
  Message(pair);
  ASSERT_TRUE(HasEvent(pair.b));
  EXPECT_EQ(TakeEvent(pair.b), pair.b.recv_cq.get());
  EXPECT_FALSE(HasEvent(pair.b)) << "one event per arming";
  const FakeCqView view = pair.fabric->Look(pair.b.recv_cq.get());
  EXPECT_EQ(view.entries, 3U);
  EXPECT_EQ(view.arms, 1U);
  EXPECT_EQ(view.events_sent, 1U);
  EXPECT_EQ(view.events_taken, 1U);
  EXPECT_EQ(view.events_acked, 1U);
}

TEST(FakeEvents, SolicitedArmingIgnoresOrdinaryMessages) {
  FakePair pair;
  Arm(pair.b.recv_cq, /*solicited_only=*/1);
  Message(pair);
  EXPECT_FALSE(HasEvent(pair.b));
  Message(pair, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
  EXPECT_TRUE(HasEvent(pair.b));
}

TEST(FakeEvents, SolicitedDoesNotDowngradeAnyButAnyUpgrades) {
  FakePair pair;
  Arm(pair.b.recv_cq, 0);
  Arm(pair.b.recv_cq, 1);
  Message(pair);
  ASSERT_TRUE(HasEvent(pair.b));
  TakeEvent(pair.b);
  Arm(pair.b.recv_cq, 1);
  Arm(pair.b.recv_cq, 0);
  Message(pair);
  EXPECT_TRUE(HasEvent(pair.b));
}

TEST(FakeEvents, AnErrorWakesSolicitedArming) {
  FakePair pair;
  Arm(pair.a.send_cq, /*solicited_only=*/1);
  pair.fabric->FailNextSend(pair.a.qp.get(), IBV_WC_RETRY_EXC_ERR);
  ASSERT_EQ(Send(pair.a, 1), 0);
  EXPECT_TRUE(HasEvent(pair.a));
}

TEST(FakeEvents, ACqWithoutChannelCannotBeArmed) {
  FakePair pair;
  const Cq cq = Must(pair.a.device->CreateCq({.cqe = 1}));
  EXPECT_EQ(ibv_req_notify_cq(cq.get(), 0), EINVAL);
}

TEST(FakeEvents, ReadingANonBlockingChannelWithoutEventGivesNull) {
  FakePair pair;
  ASSERT_EQ(::fcntl(pair.a.channel->fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(Must(pair.a.device->GetCqEvent(pair.a.channel.get())), nullptr);
}

TEST(FakeEvents, UnacknowledgedEventsAndQpsKeepTheCqAlive) {
  FakePair pair;
  Arm(pair.b.recv_cq);
  Message(pair);
  ibv_cq* cq = Must(pair.b.device->GetCqEvent(pair.b.channel.get()));
  Status closed = pair.b.recv_cq.Close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().errno_value, EBUSY);
  ASSERT_TRUE(pair.b.qp.Close());
  closed = pair.b.recv_cq.Close();
  ASSERT_FALSE(closed) << "one event is still owed";
  EXPECT_EQ(closed.error().errno_value, EBUSY);
  pair.b.device->AckCqEvents(cq, 1);
  EXPECT_TRUE(pair.b.recv_cq.Close());
}

TEST(FakeEvents, UnreadEventsOfADestroyedCqAreNeverSeen) {
  FakePair pair;
  FakeDevice& device = *pair.a.device;
  Cq doomed = Must(device.CreateCq({.cqe = 1, .channel = pair.a.channel.get()}));
  pair.fabric->SendSpuriousEvent(doomed.get());
  ASSERT_TRUE(doomed.Close());
  Cq next = Must(device.CreateCq({.cqe = 1, .channel = pair.a.channel.get()}));
  pair.fabric->SendSpuriousEvent(next.get());
  EXPECT_EQ(TakeEvent(pair.a), next.get());
  EXPECT_FALSE(HasEvent(pair.a));
}

TEST(FakeEvents, TwoThreadsPingPongByEvents) {
  constexpr int kRounds = 500;
  FakePair pair;
  // Arm, poll until empty, sleep: the order that loses no wake-up.
  const auto await = [](const FakeEnd& end) {
    for (ibv_wc wc; ibv_poll_cq(end.recv_cq.get(), 1, &wc) == 0;) {
      if (ibv_req_notify_cq(end.recv_cq.get(), 0) != 0) return false;
      if (ibv_poll_cq(end.recv_cq.get(), 1, &wc) == 1) break;
      TakeEvent(end);
    }
    return true;
  };
  const auto play = [&](const FakeEnd& end, bool serves) {
    for (int i = 0; i < kRounds; ++i) {
      if (Recv(end, 0, 8) != 0) return -1;
      if (serves && Send(end, 1) != 0) return -1;
      if (!await(end)) return -1;
      if (!serves && Send(end, 1) != 0) return -1;
      PollBusily(end.send_cq);
    }
    return kRounds;
  };
  int answered = 0;
  std::thread responder([&] { answered = play(pair.b, /*serves=*/false); });
  EXPECT_EQ(play(pair.a, /*serves=*/true), kRounds);
  responder.join();
  EXPECT_EQ(answered, kRounds);
}

TEST(FakeCq, OverflowIsLatchedAndRaisesAnAsyncEvent) {
  FakePair pair({.cqe = 2});
  EXPECT_EQ(Must(pair.b.device->NextAsyncEvent(Deadline::After({}))), std::nullopt);
  for (int i = 0; i < 3; ++i) Message(pair, /*flags=*/0);
  EXPECT_EQ(Drain(pair.b.recv_cq).size(), 2U);
  const FakeCqView view = pair.fabric->Look(pair.b.recv_cq.get());
  EXPECT_TRUE(view.overflowed);
  EXPECT_EQ(view.capacity, 2U);
  EXPECT_EQ(view.pushed, 3U);
  EXPECT_EQ(pair.fabric->Look(pair.b.qp.get()).recv_slots_used, 1U) << "lost with its completion";
  const auto event = Must(pair.b.device->NextAsyncEvent(Deadline::After({})));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->text, "CQ_ERR on CQ " + std::to_string(pair.b.recv_cq->handle));
  EXPECT_TRUE(event->fatal);
}

TEST(FakeCq, PollTakesAtMostWhatIsAskedFor) {
  FakePair pair;
  for (int i = 0; i < 3; ++i) Message(pair);
  ibv_wc wc[4];
  EXPECT_EQ(ibv_poll_cq(pair.b.recv_cq.get(), 2, wc), 2);
  EXPECT_EQ(ibv_poll_cq(pair.b.recv_cq.get(), 4, wc), 1);
  EXPECT_EQ(ibv_poll_cq(pair.b.recv_cq.get(), 4, wc), 0);
}

TEST(FakeHooks, SwallowedEventIsLostWithItsArming) {
  FakePair pair;
  pair.fabric->SwallowNextEvent(pair.b.recv_cq.get());
  Arm(pair.b.recv_cq);
  Message(pair);
  Message(pair);
  EXPECT_FALSE(HasEvent(pair.b));
  EXPECT_EQ(pair.fabric->Look(pair.b.recv_cq.get()).events_swallowed, 1U);
  Arm(pair.b.recv_cq);
  Message(pair);
  EXPECT_TRUE(HasEvent(pair.b)) << "only one was swallowed";
}

TEST(FakeHooks, SpuriousEventsComeWithAnEmptyCq) {
  FakePair pair;
  pair.fabric->SendSpuriousEvent(pair.b.recv_cq.get());
  pair.fabric->SendSpuriousEvent(pair.b.recv_cq.get());
  EXPECT_EQ(TakeEvent(pair.b), pair.b.recv_cq.get());
  EXPECT_EQ(TakeEvent(pair.b), pair.b.recv_cq.get());
  EXPECT_TRUE(Drain(pair.b.recv_cq).empty());
}

TEST(FakeHooks, HeldEventsComeWhenReleased) {
  FakePair pair;
  pair.fabric->HoldEvents(pair.b.recv_cq.get());
  Arm(pair.b.recv_cq);
  Message(pair);
  EXPECT_FALSE(HasEvent(pair.b));
  EXPECT_EQ(pair.fabric->Look(pair.b.recv_cq.get()).events_held, 1U);
  pair.fabric->ReleaseEvents(pair.b.recv_cq.get());
  ASSERT_TRUE(HasEvent(pair.b));
  EXPECT_EQ(TakeEvent(pair.b), pair.b.recv_cq.get());
  Arm(pair.b.recv_cq);
  Message(pair);
  EXPECT_TRUE(HasEvent(pair.b)) << "no longer held";
}

TEST(FakeHooks, CompletionBetweenEmptyPollAndArmGivesNoEvent) {
  FakePair pair;
  const Cq& cq = pair.b.recv_cq;
  pair.fabric->RunAt(FakePoint::kAfterEmptyPoll, cq.get(),
                     [&] { pair.fabric->InjectCompletion(cq.get(), WcOf(1)); });
  pair.fabric->RunAt(FakePoint::kBeforeArm, cq.get(),
                     [&] { pair.fabric->InjectCompletion(cq.get(), WcOf(2)); });
  ibv_wc wc;
  EXPECT_EQ(ibv_poll_cq(cq.get(), 1, &wc), 0);
  Arm(cq);
  EXPECT_FALSE(HasEvent(pair.b));
  EXPECT_EQ(Drain(cq).size(), 2U);
}

TEST(FakeHooks, CompletionAfterArmGivesAnEvent) {
  FakePair pair;
  const Cq& cq = pair.b.recv_cq;
  pair.fabric->RunAt(FakePoint::kAfterArm, cq.get(),
                     [&] { pair.fabric->InjectCompletion(cq.get(), WcOf(1)); });
  Arm(cq);
  EXPECT_TRUE(HasEvent(pair.b));
}

TEST(FakeHooks, ActionsQueueUpAndEachArrivalTakesOne) {
  FakePair pair;
  const Cq& cq = pair.b.recv_cq;
  std::string order;
  for (const char step : {'a', 'b'}) {
    pair.fabric->RunAt(FakePoint::kAfterEmptyPoll, cq.get(), [&order, step] { order += step; });
  }
  for (int i = 0; i < 3; ++i) Drain(cq);
  EXPECT_EQ(order, "ab");
}

TEST(FakeHooks, TheLastMomentBeforeBlockingCanBeReached) {
  FakePair pair;
  pair.fabric->RunAt(FakePoint::kBeforeEventRead, pair.b.channel.get(),
                     [&] { pair.fabric->SendSpuriousEvent(pair.b.send_cq.get()); });
  EXPECT_EQ(TakeEvent(pair.b), pair.b.send_cq.get());
}

TEST(FakeHooks, InjectedCompletionArrivesExactlyAsGiven) {
  FakePair pair;
  ibv_wc garbage = WcOf(0xDEADBEEF, IBV_WC_GENERAL_ERR);
  garbage.opcode = IBV_WC_DRIVER3;
  garbage.byte_len = 0xFFFFFFFF;
  garbage.qp_num = pair.a.qp->qp_num;
  Arm(pair.a.send_cq);
  pair.fabric->InjectCompletion(pair.a.send_cq.get(), garbage);
  EXPECT_TRUE(HasEvent(pair.a));
  const auto got = Drain(pair.a.send_cq);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].wr_id, 0xDEADBEEF);
  EXPECT_EQ(got[0].status, IBV_WC_GENERAL_ERR);
  EXPECT_EQ(got[0].opcode, IBV_WC_DRIVER3);
  EXPECT_EQ(got[0].byte_len, 0xFFFFFFFF);
  EXPECT_EQ(pair.fabric->Look(pair.a.qp.get()).send_slots_used, 0U);
}

TEST(FakeHooks, RaisedAsyncEventsAreReadInOrder) {
  FakePair pair;
  pair.fabric->RaiseAsyncEvent(pair.a.qp.get(), {.text = "PORT_ERR", .fatal = true});
  pair.fabric->RaiseAsyncEvent(pair.a.qp.get(), {.text = "PORT_ACTIVE", .fatal = false});
  pollfd wait = {.fd = pair.a.qp->context->async_fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&wait, 1, 0), 1);
  EXPECT_EQ(Must(pair.a.device->NextAsyncEvent(Deadline::After({})))->text, "PORT_ERR");
  EXPECT_EQ(Must(pair.a.device->NextAsyncEvent(Deadline::After({})))->text, "PORT_ACTIVE");
  EXPECT_EQ(::poll(&wait, 1, 0), 0);
}

}  // namespace
}  // namespace verbscope
