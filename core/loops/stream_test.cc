// Streams against the fake device: every message is accounted for whatever the depths, lists,
// signalling and number of queue pairs; lost and misordered completions are found.
#include "core/loops/stream.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "core/endpoint/endpoint_test_util.h"

namespace verbscope {
namespace {

struct End {
  explicit End(const Clock& clock)
      : sent(clock.scale(1.0), clock.scale().Ticks(1'000'000), 64),
        received(clock.scale(1.0), clock.scale().Ticks(1'000'000), 64) {}
  RateRecorder sent;
  RateRecorder received;
  StopSignal stop;
  LoopOutcome outcome;
};

class StreamTest : public testing::Test {
 protected:
  static Plan StreamPlan(const char* command) {
    Plan plan;
    plan.command = command;
    plan.tx_depth = 16;
    plan.rx_depth = 32;
    return plan;
  }

  StreamSetup Setup(Endpoint& endpoint, End& end, bool sends, bool receives) {
    StreamSetup setup = endpoint.Stream(end.stop);
    setup.sends = sends;
    setup.receives = receives;
    setup.sent = &end.sent;
    setup.received = &end.received;
    return setup;
  }

  // One phase, a to b, and what was on its way at the end.
  void Run(EndpointPair& pair, LoopLength length, WaitMode wait = {}) {
    const bool counted = pair.a->receives_posted() > 0;
    std::atomic<bool> over = false;
    std::thread ticker([&] {
      while (!over) {
        a_.stop.Tick();
        b_.stop.Tick();
        std::this_thread::yield();
      }
    });
    std::atomic<int64_t> sent = -1;
    std::thread receiver([&] {
      const StreamSetup setup = Setup(*pair.b, b_, false, true);
      // Of one-sided operations nothing comes: it waits until it is stopped.
      b_.outcome = RunStream(setup, {}, wait, clock_);
      int64_t expected = sent;
      for (; expected < 0; expected = sent) std::this_thread::yield();
      while (counted && b_.outcome.received < static_cast<uint64_t>(expected)) {
        b_.outcome.received += RunStream(setup, {}, wait, clock_).received;
      }
    });
    a_.outcome = RunStream(Setup(*pair.a, a_, true, false), length, wait, clock_);
    // Of a run that failed nobody waits for the rest.
    sent = a_.outcome.end == LoopEnd::kComplete ? static_cast<int64_t>(a_.outcome.sent) : 0;
    b_.stop.Stop(StopReason::kDone);
    receiver.join();
    over = true;
    ticker.join();
    b_.stop.Reset();
  }

  Clock clock_ = Clock::Calibrate();
  End a_{clock_};
  End b_{clock_};
};

class StreamCommandTest : public StreamTest, public testing::WithParamInterface<const char*> {};

TEST_P(StreamCommandTest, EveryMessageIsAccountedFor) {
  for (const bool imm : {false, true}) {
    Plan plan = StreamPlan(GetParam());
    if (imm && plan.command == "read-bw") continue;
    plan.imm = imm;
    EndpointPair pair(plan);
    const bool counted = plan.command == "send-bw" || imm;
    const uint64_t sent_before = a_.sent.messages();
    const uint64_t received_before = b_.received.messages();
    uint64_t total = 0;
    for (const uint64_t messages : {1u, 2u, 1000u}) {
      Run(pair, {.messages = messages});
      EXPECT_EQ(a_.outcome.end, LoopEnd::kComplete);
      EXPECT_EQ(a_.outcome.sent, messages);
      EXPECT_EQ(a_.outcome.samples, messages);
      EXPECT_EQ(b_.outcome.received, counted ? messages : 0u);
      total += messages;
    }
    // Both counters go on over the phases.
    EXPECT_EQ(a_.sent.messages() - sent_before, total);
    EXPECT_EQ(b_.received.messages() - received_before, counted ? total : 0u);
    EXPECT_TRUE(pair.a->Close());
    EXPECT_TRUE(pair.b->Close());
  }
}

INSTANTIATE_TEST_SUITE_P(Commands, StreamCommandTest,
                         testing::Values("send-bw", "write-bw", "read-bw"),
                         [](const auto& param) { return std::string(param.param).substr(0, 4); });

TEST_F(StreamTest, EventWaitingEndsToo) {
  const WaitMode wait = {.kind = WaitKind::kEvent};
  EndpointPair pair(StreamPlan("send-bw"), 64, wait);
  Run(pair, {.messages = 300}, wait);
  EXPECT_EQ(a_.outcome.samples, 300u);
  EXPECT_EQ(b_.outcome.received, 300u);
  EXPECT_EQ(b_.outcome.wait.lost_wakeups, 0u);
}

TEST_F(StreamTest, ATimeEndsWithEverythingComplete) {
  Plan plan = StreamPlan("write-bw");
  plan.signal_every = 7;
  plan.post_list = 3;
  EndpointPair pair(plan);
  Run(pair, {.ticks = clock_.scale().Ticks(3'000'000)});
  EXPECT_EQ(a_.outcome.end, LoopEnd::kComplete);
  EXPECT_GT(a_.outcome.sent, 0u);
  EXPECT_EQ(a_.outcome.samples, a_.outcome.sent);
  EXPECT_EQ(a_.sent.messages(), a_.outcome.sent);
}

// Combinations that do not divide each other hung other tools, or left requests without account.
TEST_F(StreamTest, RandomCombinationsLoseNothing) {
  std::mt19937 random(5);
  const auto pick = [&](uint32_t low, uint32_t high) {
    return std::uniform_int_distribution<uint32_t>(low, high)(random);
  };
  for (int i = 0; i < 150; ++i) {
    Plan plan = StreamPlan(pick(0, 1) ? "send-bw" : "write-bw");
    plan.tx_depth = pick(1, 20);
    plan.rx_depth = pick(1, 40);
    plan.post_list = pick(1, plan.tx_depth);
    plan.signal_every = pick(0, plan.tx_depth);
    plan.qps = pick(1, 5);
    plan.imm = pick(0, 1);
    const uint64_t messages = pick(1, 200);
    SCOPED_TRACE(fmt::format("{} t={} r={} l={} s={} q={} imm={} n={}", plan.command, plan.tx_depth,
                             plan.rx_depth, plan.post_list, plan.signal_every, plan.qps, plan.imm,
                             messages));
    EndpointPair pair(plan);
    for (int phase = 0; phase < 2; ++phase) {
      Run(pair, {.messages = messages});
      ASSERT_EQ(a_.outcome.end, LoopEnd::kComplete);
      ASSERT_EQ(a_.outcome.sent, messages);
      ASSERT_EQ(a_.outcome.samples, messages);
      if (pair.a->receives_posted() > 0) {
        ASSERT_EQ(b_.outcome.received, messages);
      }
    }
  }
}

TEST_F(StreamTest, AFailedRequestIsLatchedWithItsQueuePair) {
  Plan plan = StreamPlan("write-bw");
  plan.qps = 3;
  EndpointPair pair(plan);
  pair.fabric->FailNextSend(pair.a->qp(2), IBV_WC_REM_ACCESS_ERR);
  Run(pair, {.messages = 100});
  EXPECT_EQ(a_.outcome.end, LoopEnd::kSendFailed);
  EXPECT_EQ(a_.outcome.failure.status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(QpIndexOf(a_.outcome.failure.wr_id), 2u);
}

// A completion for fewer requests than are known to be complete.
TEST_F(StreamTest, ACompletionOutOfOrderIsFound) {
  EndpointPair pair(StreamPlan("write-bw"));
  Run(pair, {.messages = 50});
  ibv_wc stale = {};
  stale.wr_id = MakeWrId(WrKind::kSend, 0, 3);
  stale.status = IBV_WC_SUCCESS;
  pair.fabric->InjectCompletion(pair.a->send_cq(), stale);
  Run(pair, {.messages = 50});
  EXPECT_EQ(a_.outcome.end, LoopEnd::kMismatch);
  EXPECT_EQ(a_.outcome.mismatch.kind, LoopMismatch::Kind::kOutOfOrder);
  EXPECT_EQ(a_.outcome.mismatch.got, 3u);
}

TEST_F(StreamTest, ACompletionOfNoQueuePairIsFound) {
  EndpointPair pair(StreamPlan("write-bw"));
  ibv_wc foreign = {};
  foreign.wr_id = MakeWrId(WrKind::kSend, 9, 1);
  foreign.status = IBV_WC_SUCCESS;
  pair.fabric->InjectCompletion(pair.a->send_cq(), foreign);
  Run(pair, {.messages = 50});
  EXPECT_EQ(a_.outcome.end, LoopEnd::kMismatch);
  EXPECT_EQ(a_.outcome.mismatch.kind, LoopMismatch::Kind::kWrongCompletion);
}

}  // namespace
}  // namespace verbscope
