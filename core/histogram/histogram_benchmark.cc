// What a sample costs, and what is done between runs. Run by hand.
#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>

#include "core/histogram/hdr_codec.h"
#include "core/histogram/histogram.h"

namespace verbscope {
namespace {

// Values like a latency run's: log-normal around 2 µs. `range(0)` is the spread in percent.
std::array<int64_t, 4096> Latencies(int64_t spread_percent) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(std::log(2000),
                                              static_cast<double>(spread_percent) / 100);
  std::array<int64_t, 4096> values{};
  for (int64_t& value : values) value = static_cast<int64_t>(latency(random));
  return values;
}

void BM_Record(benchmark::State& state) {
  const auto values = Latencies(state.range(0));
  Histogram histogram;
  size_t i = 0;
  for (auto unused : state) {
    (void)unused;
    histogram.Record(values[i++ % values.size()]);
  }
  benchmark::DoNotOptimize(histogram.count());
}
BENCHMARK(BM_Record)->Arg(5)->Arg(100)->Arg(400);

Histogram Filled() {
  Histogram histogram;
  for (const int64_t value : Latencies(100)) histogram.Record(value);
  return histogram;
}

void BM_RecordAndReset(benchmark::State& state) {
  const auto values = Latencies(5);
  Histogram histogram;
  for (auto unused : state) {
    (void)unused;
    for (size_t i = 0; i < 100; ++i) histogram.Record(values[i]);
    histogram.Reset();
  }
}
BENCHMARK(BM_RecordAndReset);

void BM_ValueAtRank(benchmark::State& state) {
  const Histogram histogram = Filled();
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(histogram.ValueAtRank(histogram.count() - 1));
  }
}
BENCHMARK(BM_ValueAtRank);

void BM_Encode(benchmark::State& state) {
  const Histogram histogram = Filled();
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(EncodeHdrV2(histogram));
  }
}
BENCHMARK(BM_Encode);

void BM_Decode(benchmark::State& state) {
  const std::string text = EncodeHdrV2(Filled());
  for (auto unused : state) {
    (void)unused;
    benchmark::DoNotOptimize(DecodeHdrV2(text));
  }
}
BENCHMARK(BM_Decode);

}  // namespace
}  // namespace verbscope
