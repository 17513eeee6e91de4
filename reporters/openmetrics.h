// Records as metrics for Prometheus: a file for the textfile collector of node_exporter, a push
// gateway, or any reader of OpenMetrics. Pure function, any thread.
#ifndef VERBSCOPE_REPORTERS_OPENMETRICS_H_
#define VERBSCOPE_REPORTERS_OPENMETRICS_H_

#include <span>
#include <string>

#include "core/record/record.h"

namespace verbscope {

// Text that is OpenMetrics 1.0 and the older Prometheus format at once, so without counters and
// info metrics, which both spell differently: everything is a gauge but verbscope_latency_seconds,
// a cumulative histogram. Ends with "# EOF". Seconds, bytes, ratios.
//
// The edges `le` are the same in every file, 1-2-5 from 10 ns to 100 s, so that histograms of
// several runs can be added. A bucket of the record that an edge cuts counts above it: each count
// is that of samples certainly not above the edge, which beyond 2,048 ns may miss those within
// 0.1 % below it.
//
// Labels of a figure of a result are the members of its point, side, run, set, command, host and
// device; of several records each has its place as `report`. No series occurs twice.
std::string RenderOpenMetrics(std::span<const Record> records);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_OPENMETRICS_H_
