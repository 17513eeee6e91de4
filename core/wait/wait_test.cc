// The order arm, drain, blocking read, acknowledge, re-arm, drain, against a device that delivers
// completions and events at the worst moments.
#include "core/wait/wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "core/clock/cpu_counter.h"
#include "transports/fake/fake_pair.h"

namespace verbscope {
namespace {

// One receive CQ on a channel, completions by injection, and a control thread that ticks.
class WaitTest : public testing::Test {
 protected:
  WaitTest()
      : ticker_([this] {
          while (!stop_ticking_) stop_.Tick();
        }) {}
  ~WaitTest() override {
    stop_ticking_ = true;
    ticker_.join();
  }

  ibv_cq* cq() { return pair_.a.recv_cq.get(); }
  FakeFabric& fabric() { return *pair_.fabric; }
  FakeCqView Look() { return fabric().Look(cq()); }

  void Complete(uint64_t wr_id, bool solicited = false) {
    ibv_wc wc = {};
    wc.wr_id = wr_id;
    wc.status = IBV_WC_SUCCESS;
    fabric().InjectCompletion(cq(), wc, solicited);
  }
  EventWait Event(bool solicited = false) {
    return EventWait(*pair_.a.device, cq(), solicited, stop_);
  }
  // Every event that was taken has been acknowledged: the CQ can be destroyed.
  void ExpectAllAcknowledged() { EXPECT_EQ(Look().events_taken, Look().events_acked); }

  FakePair pair_;
  StopSignal stop_;
  std::atomic<bool> stop_ticking_ = false;
  std::thread ticker_;
};

template <class Waiter>
uint64_t NextId(Waiter& waiter) {
  ibv_wc wc = {};
  EXPECT_EQ(waiter.Next(&wc, 1), 1);
  return wc.wr_id;
}

TEST_F(WaitTest, BusyPollReturnsCompletionsInOrderAndStopsWhenEmpty) {
  const StopAttachment attachment(stop_);
  BusyPoll wait(cq(), stop_);
  Complete(1);
  Complete(2);
  stop_.Stop(StopReason::kDone);
  EXPECT_EQ(NextId(wait), 1u);  // what is there is delivered even after stop
  EXPECT_EQ(NextId(wait), 2u);
  ibv_wc wc;
  EXPECT_EQ(wait.Next(&wc, 1), 0);
}

TEST_F(WaitTest, EventWaitArmsBeforeItSleepsAndReArmsAfterEachEvent) {
  const StopAttachment attachment(stop_);
  EventWait wait = Event();
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel, [&] { Complete(7); });
  EXPECT_EQ(NextId(wait), 7u);
  EXPECT_EQ(wait.counters().events, 1u);
  EXPECT_EQ(wait.counters().empty_wakeups, 0u);
  EXPECT_EQ(Look().arms, 2u);  // the first, and the one after the event
  EXPECT_EQ(Look().arming, FakeArming::kAny);
  ExpectAllAcknowledged();
}

// The race that hangs other tools: a completion between the last empty poll and the arming makes no
// event on many devices. The drain after arming finds it.
TEST_F(WaitTest, CompletionBetweenEmptyPollAndArmingIsNotLost) {
  const StopAttachment attachment(stop_);
  EventWait wait = Event();
  fabric().RunAt(FakePoint::kBeforeArm, cq(), [&] { Complete(3); });
  EXPECT_EQ(NextId(wait), 3u);
  EXPECT_EQ(wait.counters().events, 0u);
  EXPECT_EQ(wait.counters().lost_wakeups, 0u);
}

TEST_F(WaitTest, OneEventForManyCompletionsLosesNone) {
  const StopAttachment attachment(stop_);
  EventWait wait = Event();
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel, [&] {
    for (uint64_t id = 1; id <= 5; ++id) Complete(id);
  });
  for (uint64_t id = 1; id <= 5; ++id) EXPECT_EQ(NextId(wait), id);
  EXPECT_EQ(wait.counters().events, 1u);
  ExpectAllAcknowledged();
}

TEST_F(WaitTest, SpuriousEventIsAnEmptyWakeupAndNoCompletion) {
  const StopAttachment attachment(stop_);
  EventWait wait = Event();
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel,
                 [&] { fabric().SendSpuriousEvent(cq()); });
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel, [&] { Complete(9); });
  EXPECT_EQ(NextId(wait), 9u);
  EXPECT_EQ(wait.counters().empty_wakeups, 1u);
  EXPECT_EQ(wait.counters().events, 2u);
  ExpectAllAcknowledged();
}

TEST_F(WaitTest, SwallowedEventIsCountedAsLostWakeupAndTheCompletionDelivered) {
  const StopAttachment attachment(stop_);
  EventWait wait = Event();
  fabric().SwallowNextEvent(cq());
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel, [&] { Complete(4); });
  EXPECT_EQ(NextId(wait), 4u);
  EXPECT_EQ(wait.counters().lost_wakeups, 1u);
  EXPECT_EQ(wait.counters().events, 0u);
  // It goes on: the next completion wakes it as usual.
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel, [&] { Complete(5); });
  EXPECT_EQ(NextId(wait), 5u);
  EXPECT_EQ(wait.counters().events, 1u);
  EXPECT_EQ(wait.counters().lost_wakeups, 1u);
}

// A device that was asked to hold events back loses nothing when it does.
TEST_F(WaitTest, AnEventThatIsHeldBackOnPurposeIsNotLost) {
  const StopAttachment attachment(stop_);
  stop_.set_late_events_ms(10'000);
  fabric().HoldEvents(cq());
  EventWait wait = Event();
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel, [this] { Complete(1); });
  std::thread device([this] {
    while (Look().entries > 0 || Look().pushed == 0) std::this_thread::yield();
    fabric().ReleaseEvents(cq());
  });
  EXPECT_EQ(NextId(wait), 1u);
  device.join();
  EXPECT_EQ(wait.counters().lost_wakeups, 0u);
}

TEST_F(WaitTest, StopEndsABlockedEventWait) {
  const StopAttachment attachment(stop_);
  EventWait wait = Event();
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel,
                 [&] { stop_.Stop(StopReason::kPeerLost); });
  ibv_wc wc;
  EXPECT_EQ(wait.Next(&wc, 1), 0);
  ExpectAllAcknowledged();
}

TEST_F(WaitTest, SolicitedWaitSleepsThroughUnsolicitedCompletions) {
  const StopAttachment attachment(stop_);
  EventWait wait = Event(/*solicited=*/true);
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel, [&] {
    Complete(1, /*solicited=*/false);
    Complete(2, /*solicited=*/true);
  });
  EXPECT_EQ(NextId(wait), 1u);
  EXPECT_EQ(NextId(wait), 2u);
  EXPECT_EQ(wait.counters().events, 1u);
  EXPECT_EQ(Look().arming, FakeArming::kSolicited);
}

TEST_F(WaitTest, HybridWaitMakesNoEventWhenTheCompletionComesWhileItSpins) {
  const StopAttachment attachment(stop_);
  HybridWait<CpuCounter> wait(*pair_.a.device, cq(), /*spin_ticks=*/UINT64_MAX / 2, stop_);
  fabric().RunAt(FakePoint::kAfterEmptyPoll, cq(), [&] { Complete(1); });
  EXPECT_EQ(NextId(wait), 1u);
  EXPECT_EQ(wait.counters().events, 0u);
  EXPECT_EQ(Look().arms, 0u);
}

TEST_F(WaitTest, HybridWaitSleepsAfterItsBudgetAndDrainsAfterArming) {
  const StopAttachment attachment(stop_);
  HybridWait<CpuCounter> wait(*pair_.a.device, cq(), /*spin_ticks=*/1, stop_);
  fabric().RunAt(FakePoint::kBeforeArm, cq(), [&] { Complete(1); });
  EXPECT_EQ(NextId(wait), 1u);
  fabric().RunAt(FakePoint::kBeforeEventRead, cq()->channel, [&] { Complete(2); });
  EXPECT_EQ(NextId(wait), 2u);
  EXPECT_LE(wait.counters().events, 1u);
  EXPECT_EQ(wait.counters().lost_wakeups, 0u);
  ExpectAllAcknowledged();
}

// Three completions, each arriving at one of the points between two steps of the waiter, in all
// combinations: none is lost, doubled or out of order, and nothing is left unacknowledged. On
// devices that leave what is queued when they are armed to the next poll, and on those that tell of
// it; for event mode and for the one that arms only before it sleeps; armed for all and for
// solicited ones.
struct ModelCase {
  bool signals_queued;
  bool rearms_at_once;
  bool solicited;
};

class WaitModelTest : public WaitTest, public testing::WithParamInterface<ModelCase> {
 protected:
  template <class Waiter>
  void ExpectThreeInOrder(FakePair& pair, Waiter wait) {
    for (uint64_t id = 1; id <= 3; ++id) ASSERT_EQ(NextId(wait), id);
    EXPECT_EQ(wait.counters().lost_wakeups, 0u);
    const FakeCqView view = pair.fabric->Look(pair.a.recv_cq.get());
    EXPECT_EQ(view.events_taken, view.events_acked);
  }
};

TEST_P(WaitModelTest, NoInterleavingOfThreeCompletionsLosesOne) {
  const ModelCase& model = GetParam();
  const StopAttachment attachment(stop_);
  const std::vector<FakePoint> points = {FakePoint::kAfterEmptyPoll, FakePoint::kBeforeArm,
                                         FakePoint::kAfterArm, FakePoint::kBeforeEventRead};
  for (const FakePoint first : points) {
    for (const FakePoint second : points) {
      for (const FakePoint third : points) {
        FakePair pair;
        pair.fabric->set_signals_queued(model.signals_queued);
        ibv_cq* const receive = pair.a.recv_cq.get();
        uint64_t delivered = 0;
        const auto deliver_next = [&] {
          if (delivered == 3) return;
          ibv_wc wc = {};
          wc.wr_id = ++delivered;
          wc.status = IBV_WC_SUCCESS;
          pair.fabric->InjectCompletion(receive, wc, model.solicited);
        };
        for (const FakePoint point : {first, second, third}) {
          if (point != FakePoint::kBeforeEventRead)
            pair.fabric->RunAt(point, receive, deliver_next);
        }
        // A point may not be reached again (arming needs an event): whatever has not arrived when
        // the waiter would block arrives then.
        for (int i = 0; i < 3; ++i) {
          pair.fabric->RunAt(FakePoint::kBeforeEventRead, receive->channel, deliver_next);
        }
        Device& device = *pair.a.device;
        if (model.rearms_at_once) {
          ExpectThreeInOrder(pair, BasicEventWait<true>(device, receive, model.solicited, stop_));
        } else {
          ExpectThreeInOrder(pair, BasicEventWait<false>(device, receive, model.solicited, stop_));
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, WaitModelTest,
                         testing::Values(ModelCase{false, true, false},
                                         ModelCase{true, true, false},
                                         ModelCase{false, false, false},
                                         ModelCase{true, false, false},
                                         ModelCase{false, true, true}, ModelCase{true, true, true}),
                         [](const testing::TestParamInfo<ModelCase>& parameter) {
                           const ModelCase& model = parameter.param;
                           return std::string(model.signals_queued ? "Tells" : "Silent") +
                                  (model.rearms_at_once ? "RearmsAtOnce" : "RearmsLate") +
                                  (model.solicited ? "Solicited" : "Any");
                         });

}  // namespace
}  // namespace verbscope
