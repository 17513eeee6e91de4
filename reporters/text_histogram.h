// The shape of a distribution in about a dozen lines: even steps up to p99, then steps that grow,
// so that the body shows its form and the tail stays visible to its last sample. Pure functions.
#ifndef VERBSCOPE_REPORTERS_TEXT_HISTOGRAM_H_
#define VERBSCOPE_REPORTERS_TEXT_HISTOGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/record/record.h"
#include "reporters/text_canvas.h"

namespace verbscope {

struct HistogramRow {
  int64_t from_ns = 0;  // inclusive; the row ends where the next begins
  uint64_t count = 0;
  bool tail = false;  // above p99
};

inline constexpr size_t kMaxHistogramRows = 17;

// At most kMaxHistogramRows, ascending; counts add up to all samples; the first row holds the
// minimum and the last one the maximum, so neither is ever empty. A bucket counts where it begins,
// which is exact to the bucket (0.1 %). Empty for no samples.
std::vector<HistogramRow> HistogramRows(const LatencyMetrics& latency);

// `count` of `largest` as a bar of at most `columns`: eighth blocks, or '#' without unicode. A
// count above zero is never invisible.
std::string Bar(uint64_t count, uint64_t largest, size_t columns, bool unicode);

void DrawHistogram(const LatencyMetrics& latency, Canvas& canvas);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_TEXT_HISTOGRAM_H_
