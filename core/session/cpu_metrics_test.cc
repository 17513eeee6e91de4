// The account of a phase, against a way of waiting whose cost is known: it works for a given CPU
// time and sleeps for a given time per message.
#include "core/session/cpu_metrics.h"

#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <thread>

namespace verbscope {
namespace {

constexpr int64_t kWorkNs = 2'000'000;
constexpr std::chrono::microseconds kSleep(500);
constexpr uint64_t kMessages = 20;

int64_t Reading(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The CPU clock says when it has worked enough, so other programs do not matter.
class SyntheticWaiter {
 public:
  int Next(ibv_wc* wcs, int /*most*/) {
    const int64_t end_ns = Reading(CLOCK_THREAD_CPUTIME_ID) + kWorkNs;
    while (Reading(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
    }
    std::this_thread::sleep_for(kSleep);
    *wcs = {};
    return 1;
  }
  WaitCounters counters() const { return {.events = kMessages / 2, .empty_wakeups = 3}; }
};

LoopOutcome TakeAll(SyntheticWaiter waiter) {
  LoopOutcome outcome;
  ibv_wc wc;
  while (outcome.received < kMessages) outcome.received += waiter.Next(&wc, 1) > 0 ? 1 : 0;
  outcome.wait = waiter.counters();
  return outcome;
}

TEST(CpuMetricsTest, AWayOfWaitingOfKnownCostIsAccountedForWithinATenth) {
  const int64_t begun_ns = Reading(CLOCK_MONOTONIC);
  const CpuAccount account;
  const LoopOutcome outcome = TakeAll(SyntheticWaiter());
  const double seconds = static_cast<double>(Reading(CLOCK_MONOTONIC) - begun_ns) * 1e-9;
  const CpuMetrics cpu = account.Close(outcome, outcome.received);

  const double work_s = static_cast<double>(kWorkNs) * 1e-9 * kMessages;
  EXPECT_NEAR(cpu.cpu_s, work_s, work_s / 10);
  ASSERT_TRUE(cpu.us_per_message);
  EXPECT_NEAR(*cpu.us_per_message, kWorkNs / 1e3, kWorkNs / 1e4);
  ASSERT_TRUE(cpu.utilization);
  EXPECT_NEAR(*cpu.utilization, work_s / seconds, work_s / seconds / 10);
  EXPECT_GE(cpu.voluntary_switches, kMessages) << "one for each sleep";
  EXPECT_EQ(cpu.events, kMessages / 2);
  EXPECT_EQ(cpu.empty_wakeups, 3u);
  EXPECT_DOUBLE_EQ(cpu.completions_per_event.value_or(0), 2);
  EXPECT_GE(cpu.process_cpu_s.value_or(0), cpu.cpu_s * 0.99);
  EXPECT_TRUE(cpu.core);
}

TEST(CpuMetricsTest, OtherThreadsCountForTheProcessOnly) {
  const CpuAccount account;
  std::thread worker([] {
    ibv_wc wc;
    SyntheticWaiter waiter;
    for (int i = 0; i < 10; ++i) waiter.Next(&wc, 1);
  });
  worker.join();
  const CpuMetrics cpu = account.Close({}, 0);
  const double work_s = static_cast<double>(kWorkNs) * 1e-9 * 10;
  EXPECT_LT(cpu.cpu_s, work_s / 2);
  EXPECT_GE(cpu.process_cpu_s.value_or(0), work_s);
  EXPECT_FALSE(cpu.us_per_message);
  EXPECT_LT(cpu.utilization.value_or(1), 0.5);
  EXPECT_FALSE(cpu.completions_per_event);
}

}  // namespace
}  // namespace verbscope
