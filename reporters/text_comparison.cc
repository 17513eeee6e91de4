// What came of comparing two sets of runs.
#include <fmt/core.h>

#include "reporters/text_parts.h"

namespace verbscope {

void DrawComparison(const Comparison& comparison, Canvas& canvas) {
  canvas.Blank();
  for (const ComparisonRow& row : comparison.rows) {
    canvas.Wrapped(2, fmt::format("{} {}", canvas.Safe(row.metric), canvas.Safe(row.verdict)));
  }
}

}  // namespace verbscope
