// What one read of each clock costs, and one sample of a measuring loop. Run by hand.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "core/clock/clock.h"

namespace verbscope {
namespace {

template <class Counter>
void BM_Now(benchmark::State& state) {
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(Counter::Now());
  }
}
BENCHMARK(BM_Now<CpuCounter>);
BENCHMARK(BM_Now<PosixClock>);

void BM_NowAndScale(benchmark::State& state) {
  const TickScale scale(2.5e9, 0.5);
  uint64_t previous = CpuCounter::Now();
  for (auto unused : state) {
    (void)unused;
    const uint64_t now = CpuCounter::Now();
    benchmark::DoNotOptimize(scale.Nanoseconds(now - previous));
    previous = now;
  }
}
BENCHMARK(BM_NowAndScale);

void BM_Calibrate(benchmark::State& state) {
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(Clock::Calibrate());
  }
}
BENCHMARK(BM_Calibrate)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace verbscope
