// What a summary and its rank bounds cost, once per result. Run by hand.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "core/histogram/histogram.h"
#include "core/statistics/latency_summary.h"
#include "core/statistics/rank.h"

namespace verbscope {
namespace {

void BM_RankBoundsOfTheMedian(benchmark::State& state) {
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(TwoSided95(kP50, static_cast<uint64_t>(state.range(0))));
  }
}
BENCHMARK(BM_RankBoundsOfTheMedian)->RangeMultiplier(100)->Range(100, 10'000'000'000);

void BM_Summarize(benchmark::State& state) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(std::log(2000), 0.5);
  Histogram histogram;
  for (int i = 0; i < 1'000'000; ++i) histogram.Record(static_cast<int64_t>(latency(random)));
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(Summarize(histogram));
  }
}
BENCHMARK(BM_Summarize);

}  // namespace
}  // namespace verbscope
