// One percentile out of those of a result, and the bucket of any rank. Functions of plain data, any
// thread.
#ifndef VERBSCOPE_CORE_RECORD_PERCENTILE_H_
#define VERBSCOPE_CORE_RECORD_PERCENTILE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/record/record.h"

namespace verbscope {

// `percent` as in the document's keys: "50", "99.9". An empty row where it is not among them.
inline PercentileRow RowOfPercent(const LatencyMetrics& latency, std::string_view percent) {
  const auto row = std::ranges::find(latency.percentiles, percent, &PercentileRow::percent);
  return row == latency.percentiles.end() ? PercentileRow() : *row;
}

// Nothing where it is not among them, or the samples were too few to state it. In ns.
inline std::optional<int64_t> AtPercent(const LatencyMetrics& latency, std::string_view percent) {
  return RowOfPercent(latency, percent).value_ns;
}

// The bucket of the sample with this rank in ascending order, counted from 1 and clamped to what is
// there, within [min, max]. An empty one without samples.
HistogramBucket BucketAtRank(const LatencyMetrics& latency, uint64_t rank);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_PERCENTILE_H_
