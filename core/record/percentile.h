// One percentile out of those of a result. A function of plain data, any thread.
#ifndef VERBSCOPE_CORE_RECORD_PERCENTILE_H_
#define VERBSCOPE_CORE_RECORD_PERCENTILE_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/record/record.h"

namespace verbscope {

// `percent` as in the document's keys: "50", "99.9". Nothing where it is not among them, or the
// samples were too few to state it. In ns.
inline std::optional<int64_t> AtPercent(const LatencyMetrics& latency, std::string_view percent) {
  for (const PercentileRow& row : latency.percentiles) {
    if (row.percent == percent) return row.value_ns;
  }
  return std::nullopt;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_PERCENTILE_H_
