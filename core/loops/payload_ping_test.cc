// The WRITE ping-pong against the fake device.
#include "core/loops/payload_ping.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/endpoint/endpoint_test_util.h"

namespace verbscope {
namespace {

Plan WritePlan() {
  Plan plan;
  plan.command = "write-lat";
  return plan;
}

class PayloadPingTest : public testing::Test {
 protected:
  struct Ran {
    LoopOutcome requester;
    LoopOutcome responder;
    uint64_t requester_samples = 0;
    uint64_t responder_samples = 0;
  };

  Ran Run(EndpointPair& pair, LoopLength length, WaitMode wait = {}) {
    IntervalRecorder a(clock_.scale(0.5), clock_.scale(), clock_.scale().Ticks(1'000'000));
    IntervalRecorder b(clock_.scale(0.5), clock_.scale(), clock_.scale().Ticks(1'000'000));
    StopSignal stop_a;
    StopSignal stop_b;
    Ran ran;
    std::thread responder([&] {
      PayloadPingSetup setup = pair.b->PayloadPing(stop_b, b);
      setup.shares_cpu = true;
      ran.responder = RunPayloadPing(LoopRole::kResponder, setup, {}, wait, clock_);
    });
    PayloadPingSetup setup = pair.a->PayloadPing(stop_a, a);
    setup.shares_cpu = true;
    ran.requester = RunPayloadPing(LoopRole::kRequester, setup, length, wait, clock_);
    stop_b.Stop(StopReason::kDone);
    responder.join();
    a.Finish(ran.requester.last_ticks);
    b.Finish(ran.responder.last_ticks);
    ran.requester_samples = a.total().count();
    ran.responder_samples = b.total().count();
    return ran;
  }

  Clock clock_ = Clock::Calibrate();
};

// More messages than a byte counts, over several phases.
TEST_F(PayloadPingTest, BothSidesTakeAllSamples) {
  for (const uint64_t size : {1u, 64u, 5000u}) {
    EndpointPair pair(WritePlan(), size);
    for (const uint64_t messages : {1u, 255u, 700u}) {
      const Ran ran = Run(pair, {.messages = messages});
      EXPECT_EQ(ran.requester.end, LoopEnd::kComplete);
      EXPECT_EQ(ran.responder.end, LoopEnd::kStopped);
      EXPECT_EQ(ran.requester_samples, messages);
      EXPECT_EQ(ran.responder_samples, messages);
      EXPECT_EQ(ran.requester.sent, ran.responder.received);
      EXPECT_EQ(ran.responder.sent, ran.requester.received);
    }
    EXPECT_TRUE(pair.a->Close());
    EXPECT_TRUE(pair.b->Close());
  }
}

TEST_F(PayloadPingTest, SignallingEachMessageEndsToo) {
  Plan plan = WritePlan();
  plan.signal_every = 1;
  EndpointPair pair(plan);
  EXPECT_EQ(Run(pair, {.messages = 100}, {.kind = WaitKind::kBusyPause}).requester_samples, 100u);
}

TEST_F(PayloadPingTest, AFailedWriteIsFoundWhileThePayloadIsAwaited) {
  EndpointPair pair(WritePlan());
  pair.fabric->FailNextSend(pair.a->qp(), IBV_WC_REM_ACCESS_ERR);
  const Ran ran = Run(pair, {.messages = 10});
  EXPECT_EQ(ran.requester.end, LoopEnd::kSendFailed);
  EXPECT_EQ(ran.requester.failure.status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(PayloadPingTest, StopEndsASideWhosePeerIsSilent) {
  EndpointPair pair(WritePlan());
  IntervalRecorder recorder(clock_.scale(0.5), clock_.scale(), 1'000'000);
  StopSignal stop;
  stop.Stop(StopReason::kPeerLost);
  EXPECT_EQ(
      RunPayloadPing(LoopRole::kRequester, pair.a->PayloadPing(stop, recorder), {}, {}, clock_).end,
      LoopEnd::kStopped);
}

}  // namespace
}  // namespace verbscope
