// A histogram as the latency group of a result.
#ifndef VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_
#define VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_

#include "core/histogram/histogram.h"
#include "core/record/record.h"

namespace verbscope {

// Half round trips of a SEND ping-pong, ended by the receive completion.
LatencyMetrics MakeLatencyMetrics(const Histogram& histogram);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_LATENCY_METRICS_H_
