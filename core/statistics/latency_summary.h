// LatencySummary: what a report says about one latency histogram. Plain data, computed once after
// the run; any thread.
//
// Percentiles are nearest-rank samples, known to one histogram bucket (0.1 %): the value is the
// bucket's upper edge, never above the true maximum. What the samples cannot tell is absent, not
// guessed: a percentile needs 1 / (1 − q) samples to differ from the maximum, its interval more.
#ifndef VERBSCOPE_CORE_STATISTICS_LATENCY_SUMMARY_H_
#define VERBSCOPE_CORE_STATISTICS_LATENCY_SUMMARY_H_

#include <array>
#include <cstdint>
#include <optional>

#include "core/histogram/histogram.h"
#include "core/statistics/rank.h"

namespace verbscope {

// The percentiles of every report, ascending.
inline constexpr std::array<Percentile, 5> kReportedPercentiles = {kP50, kP90, kP99, kP99_9,
                                                                   kP99_99};

struct PercentileEstimate {
  Percentile percentile;
  std::optional<int64_t> value_ns;         // absent with n < 1 / (1 − q) samples
  std::optional<BucketRange> interval_ns;  // two-sided 95 %; absent below MinSamplesTwoSided
  bool operator==(const PercentileEstimate&) const = default;
};

// One percentile of a histogram. The interval's ends are the outer edges of the buckets of its two
// ranks, so rounding to buckets only ever widens it. It assumes independent samples.
PercentileEstimate EstimatePercentile(const Histogram& histogram, Percentile percentile);

struct LatencySummary {
  uint64_t samples = 0;
  // Exact; all absent without samples. The deviation is that of the population.
  std::optional<int64_t> min_ns;
  std::optional<double> mean_ns;
  std::optional<double> stdev_ns;
  std::optional<int64_t> max_ns;
  std::array<PercentileEstimate, kReportedPercentiles.size()> percentiles = {
      {{kP50, {}, {}}, {kP90, {}, {}}, {kP99, {}, {}}, {kP99_9, {}, {}}, {kP99_99, {}, {}}}};
  bool operator==(const LatencySummary&) const = default;
};

LatencySummary Summarize(const Histogram& histogram);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_STATISTICS_LATENCY_SUMMARY_H_
