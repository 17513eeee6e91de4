// The open loop in virtual time: a queue pair whose messages are answered after a fixed time,
// except while the fabric stalls, and a clock that only moves when the loop looks at it or waits.
#include "core/loops/open_loop.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <vector>

#include "core/loops/schedule.h"

namespace verbscope {
namespace {

constexpr uint64_t kUs = 1'000;
constexpr uint64_t kMs = 1'000'000;

// One tick is one ns.
struct VirtualClock {
  static uint64_t Now() { return now; }
  static inline uint64_t now = 0;
};

// Answers each message `latency_ns` after it was posted; what would be answered within the stall is
// answered at its end, in order.
class VirtualFabric {
 public:
  VirtualFabric() {
    VirtualClock::now = 1'000'000'000;
    current = this;
    context_.ops.post_send = [](ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
      return current->Post(qp, wr, bad);
    };
    context_.ops.post_recv = [](ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return 0; };
    context_.ops.poll_cq = [](ibv_cq*, int, ibv_wc*) { return 0; };
    qp_.context = cq_.context = &context_;
  }

  ibv_qp* qp() { return &qp_; }
  ibv_cq* cq() { return &cq_; }

  uint64_t latency_ns = 4 * kUs;
  uint64_t stall_from = UINT64_MAX;  // after the start
  uint64_t stall_ns = 0;
  uint64_t start = 1'000'000'000;
  std::deque<uint64_t> answers;  // when each comes
  uint64_t posted = 0;

 private:
  int Post(ibv_qp* /*qp*/, ibv_send_wr* /*wr*/, ibv_send_wr** /*bad*/) {
    ++posted;
    uint64_t at = VirtualClock::now + latency_ns;
    const uint64_t from = start + stall_from;
    if (stall_from != UINT64_MAX && at >= from && at < from + stall_ns) at = from + stall_ns;
    if (!answers.empty()) at = std::max(at, answers.back());
    answers.push_back(at);
    return 0;
  }

  static inline VirtualFabric* current = nullptr;
  ibv_context context_ = {};
  ibv_qp qp_ = {};
  ibv_cq cq_ = {};
};

class VirtualWaiter {
 public:
  explicit VirtualWaiter(VirtualFabric& fabric) : fabric_(fabric) {}

  int Next(ibv_wc* wc, int /*most*/) {
    if (fabric_.answers.empty()) return 0;  // stopped: nothing can come any more
    return Take(*wc);
  }
  template <class>
  int NextUntil(ibv_wc& wc, uint64_t until, const TickScale& /*scale*/) {
    if (!fabric_.answers.empty() && fabric_.answers.front() <= until) return Take(wc);
    VirtualClock::now = std::max(VirtualClock::now, until);
    return kTimeUp;
  }

 private:
  int Take(ibv_wc& wc) {
    VirtualClock::now = std::max(VirtualClock::now, fabric_.answers.front());
    fabric_.answers.pop_front();
    wc = {};
    wc.status = IBV_WC_SUCCESS;
    return 1;
  }
  VirtualFabric& fabric_;
};

class OpenLoopTest : public testing::Test {
 protected:
  OpenLoopTest() { recv_batch_.resize(16); }

  LoopCounts Run(double rate, uint32_t depth, LoopLength length,
                 Arrival arrival = Arrival::kFixed) {
    const TickScale ns(1e9, 1);
    const std::vector<uint64_t> gaps = MakeGaps(rate, arrival, ns, 1);
    std::vector<uint64_t> due(std::bit_ceil(uint64_t{depth}));
    StopSignal stop;
    OpenLoopSetup setup;
    setup.qp = fabric_.qp();
    setup.send_cq = fabric_.cq();
    setup.recv_cq = fabric_.cq();
    setup.request = &request_;
    setup.recv_batch = recv_batch_;
    setup.answered = true;
    setup.depth = depth;
    setup.send_slots = UINT32_MAX;
    setup.signal_every = 32;
    setup.due = due;
    setup.gaps = gaps;
    setup.scale = ns;
    setup.state = &state_;
    setup.stop = &stop;
    setup.recorder = &recorder_;
    VirtualWaiter waiter(fabric_);
    OpenLoop<true, NoResults, VirtualWaiter, VirtualClock> loop(setup, length, waiter, {});
    const LoopCounts counts = loop.Run();
    recorder_.Finish(counts.last_ticks);
    return counts;
  }

  uint64_t SamplesAbove(int64_t ns) const {
    uint64_t above = 0;
    recorder_.total().ForEachBucket([&](int64_t from, int64_t, uint64_t count) {
      if (from > ns) above += count;
    });
    return above;
  }

  VirtualFabric fabric_;
  ibv_send_wr request_ = {};
  std::vector<ibv_recv_wr> recv_batch_;
  OpenLoopState state_;
  IntervalRecorder recorder_{TickScale(1e9, 1), TickScale(1e9, 1), 100 * kMs};
};

TEST_F(OpenLoopTest, EveryMessageIsASampleOfTheFabricsLatency) {
  const LoopCounts counts = Run(100'000, 2048, {.messages = 5'000});
  EXPECT_EQ(counts.end, LoopEnd::kComplete);
  EXPECT_EQ(counts.samples, 5'000u);
  EXPECT_EQ(counts.late_sends, 0u);
  EXPECT_EQ(recorder_.total().min(), 4'000);
  EXPECT_EQ(recorder_.total().max(), 4'000);
}

TEST_F(OpenLoopTest, TheTimeHoldsAsManyMessagesAsTheRateSays) {
  const LoopCounts counts = Run(1'000, 16, {.ticks = 2'000 * kMs});
  EXPECT_EQ(counts.end, LoopEnd::kComplete);
  EXPECT_EQ(counts.samples, 1'999u);  // the first is due one gap after the start
}

// A stall of 10 ms at 100,000 messages a second. Messages due from 4 us before the stall would be
// answered within it and are answered at its end. Of those, the one answered after exactly t waited
// t; above 100 us are all but the last ten, and those that are exactly at 100 us.
TEST_F(OpenLoopTest, AStallDelaysEveryMessageThatWasDueMeanwhile) {
  fabric_.stall_from = 500 * kMs;
  fabric_.stall_ns = 10 * kMs;
  const LoopCounts counts = Run(100'000, 2048, {.messages = 100'000});
  EXPECT_EQ(counts.samples, 100'000u);
  EXPECT_EQ(counts.late_sends, 0u);
  // Due at multiples of 10 us. Answers at due + 4 us fall into [500 ms, 510 ms): due from
  // 500,000 us to 509,990 us, and those above 100 us: due before 509,900 us.
  EXPECT_EQ(SamplesAbove(100 * static_cast<int64_t>(kUs)), 990u);
  EXPECT_EQ(recorder_.total().max(), 10'000'000);
}

// With one message in flight what was due meanwhile is sent late, and its waiting counts just so.
TEST_F(OpenLoopTest, WhatCannotBeSentInTimeIsLateAndItsWaitingCounts) {
  fabric_.stall_from = 500 * kMs;
  fabric_.stall_ns = 10 * kMs;
  const LoopCounts counts = Run(100'000, 1, {.messages = 100'000});
  EXPECT_EQ(counts.samples, 100'000u);
  EXPECT_GT(counts.late_sends, 990u);
  // 4 us each, one after the other: the backlog of 1,000 shrinks by 3 for 5 that are answered.
  EXPECT_GT(SamplesAbove(100 * static_cast<int64_t>(kUs)), 990u);
  EXPECT_EQ(recorder_.total().max(), 10'000'000);
}

// Half of ten seconds stands still: a quarter of the messages waits more than 2.5 s. A closed loop
// would have shown one slow sample.
TEST_F(OpenLoopTest, ALongStallShowsInThePercentiles) {
  fabric_.stall_from = 2'000 * kMs;
  fabric_.stall_ns = 5'000 * kMs;
  Run(1'000, 8192, {.messages = 10'000});
  EXPECT_EQ(recorder_.total().count(), 10'000u);
  const int64_t p75 = recorder_.total().ValueAtRank(7'500).highest_ns;
  EXPECT_NEAR(static_cast<double>(p75), 2.5e9, 0.02e9);
}

TEST_F(OpenLoopTest, PoissonArrivalsComeAtTheRateButNotEvenly) {
  const LoopCounts counts =
      Run(100'000, 2048, {.messages = 100 * kScheduleGaps}, Arrival::kPoisson);
  EXPECT_EQ(counts.samples, 100 * kScheduleGaps);
  const double seconds = static_cast<double>(counts.last_ticks - counts.first_ticks) * 1e-9;
  EXPECT_NEAR(static_cast<double>(counts.samples) / seconds, 100'000, 100);
}

}  // namespace
}  // namespace verbscope
