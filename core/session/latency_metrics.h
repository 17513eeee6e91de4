// A histogram as the latency group of a result.
#ifndef VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_
#define VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_

#include "core/histogram/histogram.h"
#include "core/plan/operation.h"
#include "core/record/record.h"

namespace verbscope {

// What was recorded of an operation, with what its samples mean.
LatencyMetrics MakeLatencyMetrics(const Histogram& histogram, const Operation& operation);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_
