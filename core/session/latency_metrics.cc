#include "core/session/latency_metrics.h"

#include "core/histogram/hdr_codec.h"
#include "core/statistics/effective_samples.h"
#include "core/statistics/latency_summary.h"

namespace verbscope {
namespace {

std::optional<uint64_t> EffectiveAbove(const TimeBlocks& blocks, int64_t percentile_ns) {
  std::vector<BlockCount> counts;
  for (const TimeBlock& block : blocks.blocks()) {
    counts.push_back({.samples = block.samples(), .above = block.SamplesAbove(percentile_ns)});
  }
  return EffectiveSamples(counts);
}

}  // namespace

LatencyMetrics MakeLatencyMetrics(const Histogram& histogram, const Operation& operation,
                                  const TimeBlocks& blocks) {
  const LatencySummary summary = Summarize(histogram);
  LatencyMetrics metrics;
  metrics.definition = operation.definition;
  metrics.ended_by = operation.ended_by;
  metrics.samples = summary.samples;
  metrics.min_ns = summary.min_ns;
  metrics.mean_ns = summary.mean_ns;
  metrics.stdev_ns = summary.stdev_ns;
  metrics.max_ns = summary.max_ns;
  for (const PercentileEstimate& estimate : summary.percentiles) {
    PercentileRow row;
    row.percent = estimate.percentile.Text();
    row.value_ns = estimate.value_ns;
    if (estimate.interval_ns) {
      row.interval = Interval95{.low_ns = estimate.interval_ns->lowest_ns,
                                .high_ns = estimate.interval_ns->highest_ns};
    }
    if (row.value_ns) row.effective_samples = EffectiveAbove(blocks, *row.value_ns);
    metrics.percentiles.push_back(std::move(row));
  }
  metrics.significant_digits = Histogram::kSignificantDigits;
  histogram.ForEachBucket([&metrics](int64_t from_ns, int64_t to_ns, uint64_t count) {
    metrics.buckets.push_back({.from_ns = from_ns, .to_ns = to_ns, .count = count});
  });
  metrics.hdr_v2 = EncodeHdrV2(histogram);
  if (blocks.blocks().size() < 2) return metrics;
  for (const TimeBlock& block : blocks.blocks()) {
    metrics.blocks.push_back(
        {.from_s = block.from_s, .to_s = block.to_s, .hdr_v2 = EncodeHdrV2(block.ToHistogram())});
  }
  return metrics;
}

}  // namespace verbscope
