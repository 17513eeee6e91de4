// Known vectors through the whole path: ticks as a loop records them, histogram, summary, the
// document, and back.
#include "core/session/latency_metrics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "core/loops/interval_recorder.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

// One tick is one ns.
LatencyMetrics Measured(const std::vector<uint64_t>& samples_ns, const Operation& operation = {}) {
  const TickScale ns(1e9, 1);
  IntervalRecorder recorder(ns, ns, 1'000'000);
  uint64_t now = 0;
  recorder.Start(now);
  for (const uint64_t sample : samples_ns) {
    now += sample;
    recorder.Record(now, sample);
    recorder.Fold();
  }
  recorder.Finish(now);
  Result result;
  result.metrics.latency = MakeLatencyMetrics(recorder.total(), operation);
  result.intervals = recorder.TakeRows();
  const std::string text = ToJson(result, ResultForm::kWire).dump();
  Expected<Result> back = ResultFromJson(nlohmann::json::parse(text));
  EXPECT_TRUE(back) << back.error().ToText();
  uint64_t in_rows = 0;
  for (const IntervalRow& row : back->intervals) in_rows += row.messages;
  EXPECT_EQ(in_rows, samples_ns.size());
  return *back->metrics.latency;
}

int64_t AtPercent(const LatencyMetrics& metrics, std::string_view percent) {
  for (const PercentileRow& row : metrics.percentiles) {
    if (row.percent == percent) return row.value_ns.value_or(-1);
  }
  return -1;
}

// Three significant digits: at most one part in a thousand, or exact below 2,048 ns.
void ExpectWithinABucket(int64_t got, int64_t exact) {
  EXPECT_GE(got, exact);
  EXPECT_LE(static_cast<double>(got - exact), std::max(0.0, static_cast<double>(exact) * 1e-3));
}

TEST(LatencyMetrics, OneToAThousandMicroseconds) {
  std::vector<uint64_t> samples(1000);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = (i + 1) * 1000;
  std::mt19937 random(1);
  std::ranges::shuffle(samples, random);
  const LatencyMetrics metrics = Measured(samples);
  EXPECT_EQ(metrics.samples, 1000u);
  EXPECT_EQ(metrics.min_ns, 1'000);
  EXPECT_EQ(metrics.max_ns, 1'000'000);
  EXPECT_DOUBLE_EQ(*metrics.mean_ns, 500'500);
  // Of the whole population: sqrt((1000^2 - 1) / 12) us.
  EXPECT_NEAR(*metrics.stdev_ns, 288'674.99, 0.01);
  ExpectWithinABucket(AtPercent(metrics, "50"), 500'000);
  ExpectWithinABucket(AtPercent(metrics, "99"), 990'000);
  ExpectWithinABucket(AtPercent(metrics, "99.9"), 999'000);
}

TEST(LatencyMetrics, JitterBelowAMicrosecondIsNoZero) {
  std::vector<uint64_t> samples;
  for (int i = 0; i < 500; ++i) samples.insert(samples.end(), {1'600, 2'400});
  const LatencyMetrics metrics = Measured(samples);
  EXPECT_DOUBLE_EQ(*metrics.mean_ns, 2'000);
  EXPECT_DOUBLE_EQ(*metrics.stdev_ns, 400);
}

TEST(LatencyMetrics, OneOutlierIsTheMaximum) {
  std::vector<uint64_t> samples(999, 2'000);
  samples.insert(samples.begin() + 500, 500'000);
  const LatencyMetrics metrics = Measured(samples);
  EXPECT_EQ(metrics.max_ns, 500'000);
  EXPECT_EQ(AtPercent(metrics, "50"), 2'000);
  EXPECT_EQ(AtPercent(metrics, "99"), 2'000);
  EXPECT_EQ(AtPercent(metrics, "99.9"), 2'000);  // nearest rank: the 999th of 1,000
  EXPECT_DOUBLE_EQ(*metrics.mean_ns, 2'498);
}

// A percentile is stated when a sample lies beyond it, and never from what was not measured.
TEST(LatencyMetrics, TooFewSamplesStateNoPercentile) {
  for (uint64_t count = 0; count <= 20; ++count) {
    const LatencyMetrics metrics = Measured(std::vector<uint64_t>(count, 700));
    EXPECT_EQ(metrics.samples, count);
    EXPECT_EQ(metrics.min_ns.has_value(), count > 0);
    EXPECT_EQ(AtPercent(metrics, "99.9"), -1) << count;
    EXPECT_EQ(AtPercent(metrics, "90") >= 0, count >= 10) << count;
  }
}

TEST(LatencyMetrics, PercentilesLieBetweenMinimumAndMaximumWhateverTheSamples) {
  std::mt19937_64 random(3);
  for (const size_t count : {1u, 2u, 3u, 100u, 20'000u}) {
    std::vector<uint64_t> samples(count);
    for (uint64_t& sample : samples) {
      sample = static_cast<uint64_t>(std::exp(std::uniform_real_distribution<>(0, 20)(random)));
    }
    const LatencyMetrics metrics = Measured(samples);
    std::ranges::sort(samples);
    EXPECT_EQ(metrics.min_ns, static_cast<int64_t>(samples.front()));
    EXPECT_EQ(metrics.max_ns, static_cast<int64_t>(samples.back()));
    int64_t previous = *metrics.min_ns;
    for (const PercentileRow& row : metrics.percentiles) {
      if (!row.value_ns) continue;
      EXPECT_GE(*row.value_ns, previous);
      EXPECT_LE(*row.value_ns, *metrics.max_ns);
      previous = *row.value_ns;
      const double percent = std::strtod(row.percent.c_str(), nullptr);
      const auto rank =
          static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(count) - 1e-9));
      ExpectWithinABucket(*row.value_ns, static_cast<int64_t>(samples[rank - 1]));
    }
  }
}

TEST(LatencyMetrics, SaysWhatWasTimedAndWhatEndedIt) {
  for (const Operation& operation : Operations()) {
    if (!operation.measures_latency()) continue;
    const LatencyMetrics metrics = Measured({1, 2, 3}, operation);
    EXPECT_EQ(metrics.definition, operation.definition);
    EXPECT_EQ(metrics.ended_by, operation.ended_by);
  }
}

}  // namespace
}  // namespace verbscope
