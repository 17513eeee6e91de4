// The loop against the fake device: counts agree, queues never run full, every failure is latched.
#include "core/loops/ping_pong.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "core/endpoint/endpoint_test_util.h"

namespace verbscope {
namespace {

struct Exchanged {
  LoopOutcome requester;
  LoopOutcome responder;
  uint64_t requester_samples = 0;
  uint64_t responder_samples = 0;
};

// Both sides on a thread each, with a control thread that ends the responder when the requester is
// done, as a session does.
class PingPongTest : public testing::Test {
 protected:
  Exchanged Exchange(EndpointPair& pair, LoopLength length, WaitMode wait) {
    IntervalRecorder recorder_a(clock_.scale(0.5), clock_.scale(), clock_.scale().Ticks(1'000'000));
    IntervalRecorder recorder_b(clock_.scale(0.5), clock_.scale(), clock_.scale().Ticks(1'000'000));
    StopSignal stop_a;
    StopSignal stop_b;
    Exchanged run;
    std::atomic<bool> over = false;
    std::thread responder([&] {
      run.responder =
          RunPingPong(LoopRole::kResponder, pair.b->PingPong(stop_b, recorder_b), {}, wait, clock_);
      over = true;
    });
    std::atomic<bool> requester_over = false;
    std::thread ticker([&] {
      while (!over || !requester_over) {
        stop_a.Tick();
        stop_b.Tick();
        std::this_thread::yield();
      }
    });
    run.requester = RunPingPong(LoopRole::kRequester, pair.a->PingPong(stop_a, recorder_a), length,
                                wait, clock_);
    requester_over = true;
    stop_b.Stop(StopReason::kDone);
    responder.join();
    ticker.join();
    recorder_a.Finish(run.requester.last_ticks);
    recorder_b.Finish(run.responder.last_ticks);
    run.requester_samples = recorder_a.total().count();
    run.responder_samples = recorder_b.total().count();
    return run;
  }

  Clock clock_ = Clock::Calibrate();
};

class PingPongWaitTest : public PingPongTest, public testing::WithParamInterface<const char*> {};

TEST_P(PingPongWaitTest, BothSidesCountTheSameSamplesOverSeveralPhases) {
  const WaitMode wait = Must(ParseWaitMode(GetParam()));
  EndpointPair pair({}, 64, wait);
  for (const uint64_t messages : {1u, 2u, 31u, 32u, 33u, 500u}) {
    const Exchanged run = Exchange(pair, {.messages = messages}, wait);
    EXPECT_EQ(run.requester.end, LoopEnd::kComplete);
    EXPECT_EQ(run.responder.end, LoopEnd::kStopped);
    EXPECT_EQ(run.requester.samples, messages);
    EXPECT_EQ(run.responder.samples, messages);
    EXPECT_EQ(run.requester_samples, messages);
    EXPECT_EQ(run.responder_samples, messages);
    EXPECT_EQ(run.requester.received, messages + 1);  // one round trip starts the clocks
    EXPECT_EQ(run.requester.wait.lost_wakeups + run.responder.wait.lost_wakeups, 0u);
  }
  EXPECT_TRUE(pair.a->Close());
  EXPECT_TRUE(pair.b->Close());
}

INSTANTIATE_TEST_SUITE_P(AllWaits, PingPongWaitTest,
                         testing::Values("busy", "busy:pause", "event", "solicited", "hybrid:20us",
                                         "hybrid:1ns"),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name) c = c == ':' ? '_' : c;
                           return name;
                         });

// Event mode makes one wake-up per message at most: send completions never add a second one.
TEST_F(PingPongTest, SendCompletionsMakeNoEvents) {
  const WaitMode wait = {.kind = WaitKind::kEvent};
  EndpointPair pair({}, 8, wait);
  const Exchanged run = Exchange(pair, {.messages = 200}, wait);
  EXPECT_LE(run.requester.wait.events, run.requester.received);
  EXPECT_EQ(pair.a->send_cq()->channel, nullptr);
}

TEST_F(PingPongTest, AnySignalPeriodAndDepthKeepsTheQueuesInBounds) {
  for (const uint32_t signal_every : {1u, 2u, 3u, 32u, 64u}) {
    for (const uint32_t rx_depth : {1u, 2u, 3u, 5u, 512u}) {
      Plan plan;
      plan.signal_every = signal_every;
      plan.rx_depth = rx_depth;
      EndpointPair pair(plan, 16);
      const Exchanged run = Exchange(pair, {.messages = 300}, {});
      ASSERT_EQ(run.requester.end, LoopEnd::kComplete) << signal_every << " " << rx_depth;
      EXPECT_EQ(run.responder.samples, 300u);
      EXPECT_FALSE(pair.fabric->Look(pair.a->send_cq()).overflowed);
      EXPECT_FALSE(pair.fabric->Look(pair.a->recv_cq()).overflowed);
      // At most half the receives are out at any time, so the peer never meets an empty queue.
      EXPECT_GE(pair.fabric->Look(pair.a->qp()).recv_slots_used, pair.a->receives_posted() / 2);
    }
  }
}

TEST_F(PingPongTest, DurationEndsTheRequester) {
  EndpointPair pair;
  const uint64_t ticks = clock_.scale().Ticks(5'000'000);
  const Exchanged run = Exchange(pair, {.ticks = ticks}, {});
  EXPECT_EQ(run.requester.end, LoopEnd::kComplete);
  EXPECT_GE(run.requester.last_ticks - run.requester.first_ticks, ticks);
  EXPECT_EQ(run.requester.samples, run.responder.samples);
}

TEST_F(PingPongTest, AFailedSendIsLatchedByItsFlushedReceive) {
  EndpointPair pair;
  pair.fabric->FailNextSend(pair.a->qp(), IBV_WC_RETRY_EXC_ERR);
  const Exchanged run = Exchange(pair, {.messages = 10}, {});
  EXPECT_EQ(run.requester.end, LoopEnd::kRecvFailed);
  EXPECT_EQ(run.requester.failure.status, IBV_WC_WR_FLUSH_ERR);
  // The cause waits in the send queue.
  ibv_wc wc = {};
  ASSERT_EQ(ibv_poll_cq(pair.a->send_cq(), 1, &wc), 1);
  EXPECT_EQ(wc.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(wc.wr_id, MakeWrId(WrKind::kSend));
}

TEST_F(PingPongTest, StopEndsARequesterWhosePeerIsSilent) {
  EndpointPair pair;
  IntervalRecorder recorder(clock_.scale(0.5), clock_.scale(), 1'000'000);
  StopSignal stop;
  stop.Stop(StopReason::kPeerLost);
  const LoopOutcome outcome =
      RunPingPong(LoopRole::kRequester, pair.a->PingPong(stop, recorder), {}, {}, clock_);
  EXPECT_EQ(outcome.end, LoopEnd::kStopped);
  EXPECT_EQ(outcome.samples, 0u);
}

TEST_F(PingPongTest, PostingOnABrokenQueuePairIsAFailureAndNoHang) {
  EndpointPair pair;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RESET;
  Must(pair.device_a->ModifyQp(pair.a->qp(), attributes, IBV_QP_STATE, "RTS to RESET"));
  IntervalRecorder recorder(clock_.scale(0.5), clock_.scale(), 1'000'000);
  StopSignal stop;
  const LoopOutcome outcome =
      RunPingPong(LoopRole::kRequester, pair.a->PingPong(stop, recorder), {}, {}, clock_);
  EXPECT_EQ(outcome.end, LoopEnd::kPostFailed);
  EXPECT_NE(outcome.post_errno, 0);
}

}  // namespace
}  // namespace verbscope
