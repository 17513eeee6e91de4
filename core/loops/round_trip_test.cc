// Round trips against the fake device: every operation is a sample, the data comes, and every
// failure is latched.
#include "core/loops/round_trip.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "core/endpoint/endpoint_test_util.h"

namespace verbscope {
namespace {

Plan ReadPlan() {
  Plan plan;
  plan.command = "read-lat";
  return plan;
}

struct Ran {
  LoopOutcome requester;
  LoopOutcome responder;
  uint64_t samples = 0;
};

class RoundTripTest : public testing::Test {
 protected:
  // The responder on a thread of its own, ended when the requester is done, as a session does.
  Ran Run(EndpointPair& pair, LoopLength length, WaitMode wait) {
    IntervalRecorder recorder(clock_.scale(), clock_.scale(), clock_.scale().Ticks(1'000'000));
    IntervalRecorder unused(clock_.scale(), clock_.scale(), clock_.scale().Ticks(1'000'000));
    StopSignal stop_a;
    StopSignal stop_b;
    Ran ran;
    std::atomic<int> over = 0;
    std::thread responder([&] {
      ran.responder = RunServed(pair.b->RoundTrips(stop_b, unused), wait, clock_);
      ++over;
    });
    std::thread ticker([&] {
      while (over != 2) {
        stop_a.Tick();
        stop_b.Tick();
        std::this_thread::yield();
      }
    });
    ran.requester = RunRoundTrips(pair.a->RoundTrips(stop_a, recorder), length, wait, clock_);
    ++over;
    stop_b.Stop(StopReason::kDone);
    responder.join();
    ticker.join();
    recorder.Finish(ran.requester.last_ticks);
    ran.samples = recorder.total().count();
    return ran;
  }

  Clock clock_ = Clock::Calibrate();
};

class RoundTripWaitTest : public RoundTripTest, public testing::WithParamInterface<const char*> {};

TEST_P(RoundTripWaitTest, EveryOperationIsASampleOverSeveralPhases) {
  const WaitMode wait = Must(ParseWaitMode(GetParam()));
  EndpointPair pair(ReadPlan(), 64, wait);
  for (const uint64_t messages : {1u, 2u, 100u}) {
    const Ran ran = Run(pair, {.messages = messages}, wait);
    EXPECT_EQ(ran.requester.end, LoopEnd::kComplete);
    EXPECT_EQ(ran.responder.end, LoopEnd::kStopped);
    EXPECT_EQ(ran.requester.samples, messages);
    EXPECT_EQ(ran.samples, messages);
    EXPECT_EQ(ran.requester.received, messages);
    EXPECT_EQ(ran.responder.received, 0u);
    EXPECT_EQ(ran.requester.wait.lost_wakeups, 0u);
  }
  EXPECT_TRUE(pair.a->Close());
  EXPECT_TRUE(pair.b->Close());
}

INSTANTIATE_TEST_SUITE_P(AllWaits, RoundTripWaitTest,
                         testing::Values("busy", "busy:pause", "event", "hybrid:20us"),
                         [](const auto& param) {
                           std::string name = param.param;
                           for (char& c : name) c = c == ':' ? '_' : c;
                           return name;
                         });

TEST_F(RoundTripTest, AnySizeIsReadAlsoNothing) {
  for (const uint64_t size : {0u, 1u, 5000u}) {
    EndpointPair pair(ReadPlan(), size);
    EXPECT_EQ(Run(pair, {.messages = 5}, {}).samples, 5u) << size;
  }
}

TEST_F(RoundTripTest, DurationEndsTheRequester) {
  EndpointPair pair(ReadPlan());
  const uint64_t ticks = clock_.scale().Ticks(5'000'000);
  const Ran ran = Run(pair, {.ticks = ticks}, {});
  EXPECT_EQ(ran.requester.end, LoopEnd::kComplete);
  EXPECT_GE(ran.requester.last_ticks - ran.requester.first_ticks, ticks);
}

TEST_F(RoundTripTest, AFailedOperationIsLatched) {
  EndpointPair pair(ReadPlan());
  pair.fabric->FailNextSend(pair.a->qp(), IBV_WC_REM_ACCESS_ERR);
  const Ran ran = Run(pair, {.messages = 10}, {});
  EXPECT_EQ(ran.requester.end, LoopEnd::kSendFailed);
  EXPECT_EQ(ran.requester.failure.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(ran.requester.failure.wr_id, MakeWrId(WrKind::kSend));
  EXPECT_EQ(ran.samples, 0u);
}

class AtomicTest : public RoundTripTest, public testing::WithParamInterface<AtomicOp> {
 protected:
  static Plan AtomicPlan() {
    Plan plan;
    plan.command = "atomic-lat";
    plan.sizes_bytes = {8};
    plan.atomic_op = GetParam();
    return plan;
  }
};

TEST_P(AtomicTest, EveryResultIsCheckedOverSeveralPhases) {
  EndpointPair pair(AtomicPlan(), 8);
  for (const uint64_t messages : {1u, 2u, 100u}) {
    const Ran ran = Run(pair, {.messages = messages}, {});
    EXPECT_EQ(ran.requester.end, LoopEnd::kComplete);
    EXPECT_EQ(ran.samples, messages);
  }
  uint64_t target = 0;
  std::memcpy(&target, pair.b->received_part().data(), sizeof(target));
  EXPECT_EQ(target, 103u);
}

TEST_P(AtomicTest, AWrongResultIsFound) {
  EndpointPair pair(AtomicPlan(), 8);
  ASSERT_EQ(Run(pair, {.messages = 5}, {}).samples, 5u);
  // Someone else has changed the target.
  const uint64_t foreign = 77;
  std::memcpy(pair.b->received_part().data(), &foreign, sizeof(foreign));
  const Ran ran = Run(pair, {.messages = 5}, {});
  EXPECT_EQ(ran.requester.end, LoopEnd::kMismatch);
  EXPECT_EQ(ran.requester.mismatch.kind, LoopMismatch::Kind::kAtomicResult);
  EXPECT_EQ(ran.requester.mismatch.message, 6u);
  EXPECT_EQ(ran.requester.mismatch.expected, 5u);
  EXPECT_EQ(ran.requester.mismatch.got, 77u);
}

INSTANTIATE_TEST_SUITE_P(Ops, AtomicTest,
                         testing::Values(AtomicOp::kFetchAdd, AtomicOp::kCompareSwap),
                         [](const auto& param) {
                           return param.param == AtomicOp::kFetchAdd ? "FetchAdd" : "CompareSwap";
                         });

TEST_F(RoundTripTest, StopEndsARequesterWhosePeerIsSilent) {
  EndpointPair pair(ReadPlan());
  IntervalRecorder recorder(clock_.scale(), clock_.scale(), 1'000'000);
  StopSignal stop;
  stop.Stop(StopReason::kPeerLost);
  RoundTripSetup setup = pair.a->RoundTrips(stop, recorder);
  // Nothing ever completes on this one.
  setup.send_cq = setup.recv_cq;
  EXPECT_EQ(RunRoundTrips(setup, {}, {}, clock_).end, LoopEnd::kStopped);
}

TEST_F(RoundTripTest, PostingOnABrokenQueuePairIsAFailureAndNoHang) {
  EndpointPair pair(ReadPlan());
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RESET;
  Must(pair.device_a->ModifyQp(pair.a->qp(), attributes, IBV_QP_STATE, "RTS to RESET"));
  IntervalRecorder recorder(clock_.scale(), clock_.scale(), 1'000'000);
  StopSignal stop;
  const LoopOutcome outcome = RunRoundTrips(pair.a->RoundTrips(stop, recorder), {}, {}, clock_);
  EXPECT_EQ(outcome.end, LoopEnd::kPostFailed);
  EXPECT_NE(outcome.post_errno, 0);
}

}  // namespace
}  // namespace verbscope
