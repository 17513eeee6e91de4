#include "core/compare/causes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/compare/testing.h"

namespace verbscope {
namespace {

using Texts = std::vector<std::string>;

std::vector<Result> Runs(uint32_t number, const std::string& side = "requester") {
  std::vector<Result> runs;
  for (uint32_t run = 0; run < number; ++run) runs.push_back(LatencyRun(1000, run, side));
  return runs;
}

Texts Causes(const std::vector<Result>& base, const std::vector<Result>& fresh) {
  JoinedRuns runs;
  runs.point = base.front().point;
  runs.side = base.front().side;
  for (const Result& result : base) runs.base.push_back(&result);
  for (const Result& result : fresh) runs.fresh.push_back(&result);
  const JoinedRuns* const sides[] = {&runs};
  return CausesOf(sides);
}

TEST(CausesTest, ACounterThatMovedIsASentence) {
  std::vector<Result> base = Runs(6, "responder");
  std::vector<Result> fresh = Runs(6, "responder");
  for (size_t i = 0; i < 6; ++i) {
    base[i].metrics.counters = {{"out_of_sequence", 0}, {"rx_packets", 20'000}};
    fresh[i].metrics.counters = {{"out_of_sequence", 809 + static_cast<int64_t>(i)},
                                 {"rx_packets", 20'000}};
  }
  EXPECT_EQ(Causes(base, fresh), Texts{"out_of_sequence of the responder: 0 -> 812 per run"});
  EXPECT_EQ(Causes(base, base), Texts());
}

TEST(CausesTest, WhatFollowsTheNumberOfMessagesExplainsNothing) {
  std::vector<Result> base = Runs(6);
  std::vector<Result> fresh = Runs(6);
  for (size_t i = 0; i < 6; ++i) {
    base[i].metrics.counters = {{"tx_packets", 20'000}};
    fresh[i].metrics.latency->samples = 10'000;  // half as fast
    fresh[i].metrics.counters = {{"tx_packets", 10'000}};
  }
  EXPECT_EQ(Causes(base, fresh), Texts());
}

TEST(CausesTest, OneRunOutOfSixIsNoMove) {
  std::vector<Result> base = Runs(6);
  std::vector<Result> fresh = Runs(6);
  for (Result& run : base) run.metrics.counters = {{"naks", 3}};
  fresh = base;
  fresh[2].metrics.counters["naks"] = 1'000'000;
  EXPECT_EQ(Causes(base, fresh), Texts());
}

TEST(CausesTest, SchedulerWakeUpsPacerAndStallsAreCounters) {
  std::vector<Result> base = Runs(5);
  std::vector<Result> fresh = Runs(5);
  for (size_t i = 0; i < 5; ++i) {
    for (std::vector<Result>* set : {&base, &fresh}) {
      Result& run = (*set)[i];
      const bool now = set == &fresh;
      CpuMetrics& cpu = run.metrics.cpu.emplace();
      cpu.involuntary_switches = now ? 4000 : 10;
      cpu.run_delay_s = now ? 0.5 : 0.001;
      cpu.lost_wakeups = now ? 2 : 0;
      run.metrics.load.emplace().late_sends = now ? 30 : 20;
      run.intervals.resize(4);
      run.intervals[0].messages = run.intervals[1].messages = run.intervals[2].messages =
          now ? 0 : 10;
      run.intervals[3].messages = 10;
    }
  }
  EXPECT_EQ(Causes(base, fresh),
            (Texts{"intervals without a message of the requester: 0 -> 3 per run",
                   "lost_wakeups of the requester: 0 -> 2 per run",
                   "run_delay_s of the requester: 0.001 -> 0.5 per run",
                   "involuntary_switches of the requester: 10 -> 4000 per run",
                   "late_sends of the requester: 20 -> 30 per run"}));
}

TEST(CausesTest, TheManyAreCutToThoseThatMovedMost) {
  std::vector<Result> base = Runs(5);
  std::vector<Result> fresh = Runs(5);
  for (size_t i = 0; i < 5; ++i) {
    for (int64_t counter = 0; counter < 20; ++counter) {
      const std::string name = "counter_" + std::to_string(10 + counter);
      base[i].metrics.counters[name] = 1;
      fresh[i].metrics.counters[name] = 10 + counter;
    }
  }
  const Texts causes = Causes(base, fresh);
  ASSERT_EQ(causes.size(), kMaxCausesOfAPoint);
  EXPECT_EQ(causes[0], "counter_29 of the requester: 1 -> 29 per run");
}

TEST(CausesTest, ACounterThatOnlyOneSetHasIsNotCompared) {
  std::vector<Result> base = Runs(5);
  std::vector<Result> fresh = Runs(5);
  for (Result& run : fresh) run.metrics.counters = {{"new_counter", 9}};
  EXPECT_EQ(Causes(base, fresh), Texts());
  EXPECT_EQ(Causes(fresh, base), Texts());
}

}  // namespace
}  // namespace verbscope
