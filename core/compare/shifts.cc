#include "core/compare/shifts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/record/percentile.h"
#include "core/statistics/rank.h"
#include "core/statistics/rank_sum.h"

namespace verbscope {
namespace {

// The upper edge of the bucket that holds it, as the percentiles of a report are.
std::optional<int64_t> Decile(const LatencyMetrics& latency, uint32_t tenths) {
  const Percentile percentile(tenths * (Percentile::kWhole / 10));
  constexpr uint64_t kEnough = 10;
  if (latency.samples < kEnough || latency.buckets.empty()) return std::nullopt;
  return BucketAtRank(latency, NearestRank(percentile, latency.samples)).to_ns;
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
  for (uint32_t tenths = 1; tenths <= 9; ++tenths) {
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
