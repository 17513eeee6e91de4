#include "core/statistics/latency_summary.h"

#include <cstddef>

namespace verbscope {

PercentileEstimate EstimatePercentile(const Histogram& histogram, Percentile percentile) {
  PercentileEstimate estimate{percentile, {}, {}};
  const uint64_t n = histogram.count();
  if (!IsResolved(percentile, n)) return estimate;
  estimate.value_ns = histogram.ValueAtRank(NearestRank(percentile, n)).highest_ns;
  const RankBounds ranks = TwoSided95(percentile, n);
  if (ranks.lower && ranks.upper) {
    estimate.interval_ns = {histogram.ValueAtRank(*ranks.lower).lowest_ns,
                            histogram.ValueAtRank(*ranks.upper).highest_ns};
  }
  return estimate;
}

LatencySummary Summarize(const Histogram& histogram) {
  LatencySummary summary;
  summary.samples = histogram.count();
  if (summary.samples == 0) return summary;
  summary.min_ns = histogram.min();
  summary.mean_ns = histogram.mean();
  summary.stdev_ns = histogram.stdev();
  summary.max_ns = histogram.max();
  for (size_t i = 0; i < kReportedPercentiles.size(); ++i) {
    summary.percentiles[i] = EstimatePercentile(histogram, kReportedPercentiles[i]);
  }
  return summary;
}

}  // namespace verbscope
