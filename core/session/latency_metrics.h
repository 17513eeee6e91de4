// A histogram as the latency group of a result.
#ifndef VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_
#define VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_

#include "core/histogram/histogram.h"
#include "core/histogram/time_blocks.h"
#include "core/plan/operation.h"
#include "core/record/record.h"

namespace verbscope {

// What was recorded of an operation, with what its samples mean. `blocks`: the same samples, cut by
// time; empty: that is not known.
LatencyMetrics MakeLatencyMetrics(const Histogram& histogram, const Operation& operation,
                                  const TimeBlocks& blocks = {});

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_
