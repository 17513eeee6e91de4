#include "core/host/thread_usage.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace verbscope {
namespace {

TEST(ThreadUsageTest, DifferenceIsMemberByMember) {
  const ThreadUsage later = {.cpu_ns = 50,
                             .voluntary_switches = 40,
                             .involuntary_switches = 30,
                             .minor_faults = 20,
                             .major_faults = 10};
  const ThreadUsage earlier = {.cpu_ns = 1,
                               .voluntary_switches = 2,
                               .involuntary_switches = 3,
                               .minor_faults = 4,
                               .major_faults = 5};
  EXPECT_EQ(later - earlier, (ThreadUsage{.cpu_ns = 49,
                                          .voluntary_switches = 38,
                                          .involuntary_switches = 27,
                                          .minor_faults = 16,
                                          .major_faults = 5}));
}

TEST(ThreadUsageTest, CpuTimeGrowsWithWork) {
  const ThreadUsage before = ThreadUsage::Now();
  // Ends when the clock has moved: no assumption on the speed of the machine.
  while (ThreadUsage::Now().cpu_ns == before.cpu_ns) {
  }
  EXPECT_GT((ThreadUsage::Now() - before).cpu_ns, 0);
}

TEST(ThreadUsageTest, EachTouchedPageIsAFault) {
  constexpr size_t kPage = 4096;
  constexpr size_t kPages = 64;
  void* memory =
      mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(madvise(memory, kPages * kPage, MADV_NOHUGEPAGE), 0);
  const ThreadUsage before = ThreadUsage::Now();
  for (size_t page = 0; page < kPages; ++page) {
    static_cast<volatile char*>(memory)[page * kPage] = 1;
  }
  const ThreadUsage used = ThreadUsage::Now() - before;
  munmap(memory, kPages * kPage);
  EXPECT_GE(used.minor_faults, static_cast<int64_t>(kPages));
}

TEST(ThreadUsageTest, SleepingIsAVoluntarySwitch) {
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  const auto wait_for = [&](int wanted) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return turn == wanted; });
    ++turn;
    changed.notify_all();
  };
  const ThreadUsage before = ThreadUsage::Now();
  // Two threads take turns; whoever waits for the other's turn sleeps, both of them many times.
  constexpr int kTurns = 2000;
  std::thread other([&] {
    for (int i = 1; i < kTurns; i += 2) wait_for(i);
  });
  for (int i = 0; i < kTurns; i += 2) wait_for(i);
  other.join();
  EXPECT_GT((ThreadUsage::Now() - before).voluntary_switches, 0);
}

TEST(ThreadUsageTest, OtherThreadsWorkIsNotCounted) {
  ThreadUsage of_worker;
  const ThreadUsage before = ThreadUsage::Now();
  std::thread worker([&] {
    constexpr int64_t kWorkNs = 50'000'000;
    while (ThreadUsage::Now().cpu_ns < kWorkNs) {
    }
    of_worker = ThreadUsage::Now();
  });
  worker.join();
  const ThreadUsage here = ThreadUsage::Now() - before;
  EXPECT_LT(here.cpu_ns, of_worker.cpu_ns);
}

TEST(PeakRssTest, HoldsAtLeastWhatWasTouched) {
  constexpr size_t kBytes = size_t{64} << 20;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const uint64_t peak = PeakRssBytes();
  EXPECT_GE(peak, kBytes);
  munmap(memory, kBytes);
  EXPECT_GE(PeakRssBytes(), kBytes);  // a peak stays
}

}  // namespace
}  // namespace verbscope
