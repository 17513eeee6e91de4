#include "core/compare/shifts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/record/percentile.h"
#include "core/statistics/rank_sum.h"

namespace verbscope {
namespace {

// The upper edge of the bucket that holds it, as the percentiles of a report are.
std::optional<int64_t> Decile(const LatencyMetrics& latency, uint64_t tenths) {
  constexpr uint64_t kEnough = 10;
  uint64_t samples = 0;
  for (const HistogramBucket& bucket : latency.buckets) samples += bucket.count;
  if (samples < kEnough) return std::nullopt;
  // ⌈samples · tenths / 10⌉ without leaving 64 bits.
  const uint64_t rank = samples / 10 * tenths + (samples % 10 * tenths + 9) / 10;
  uint64_t below = 0;
  for (const HistogramBucket& bucket : latency.buckets) {
    below += bucket.count;
    if (below >= rank) return std::min(bucket.to_ns, latency.max_ns.value_or(bucket.to_ns));
  }
  return std::nullopt;
}

template <class Quantile>
void AddRow(const JoinedRuns& runs, std::string percent, Quantile quantile,
            std::vector<ShiftRow>& rows) {
  const auto median = [&quantile](const std::vector<const Result*>& set) -> std::optional<int64_t> {
    std::vector<double> values;
    for (const Result* run : set) {
      if (!run->metrics.latency) continue;
      const std::optional<int64_t> value = quantile(*run->metrics.latency);
      if (value) values.push_back(static_cast<double>(*value));
    }
    if (values.empty()) return std::nullopt;
    constexpr double kLongestNs = 9e18;  // a file may hold anything
    return std::llrint(std::clamp(MedianOf(std::move(values)), -kLongestNs, kLongestNs));
  };
  const std::optional<int64_t> base = median(runs.base);
  const std::optional<int64_t> fresh = median(runs.fresh);
  if (!base || !fresh) return;
  rows.push_back({.point = runs.point,
                  .side = runs.side,
                  .percent = std::move(percent),
                  .base_ns = *base,
                  .fresh_ns = *fresh});
}

}  // namespace

std::vector<ShiftRow> ShiftsOf(const JoinedRuns& runs) {
  std::vector<ShiftRow> rows;
  for (uint64_t tenths = 1; tenths <= 9; ++tenths) {
    AddRow(
        runs, std::to_string(10 * tenths),
        [tenths](const LatencyMetrics& latency) { return Decile(latency, tenths); }, rows);
  }
  for (const char* percent : {"99", "99.9", "99.99"}) {
    AddRow(
        runs, percent,
        [percent](const LatencyMetrics& latency) { return AtPercent(latency, percent); }, rows);
  }
  return rows;
}

}  // namespace verbscope
