// Reports as a run of send-lat or a bandwidth command leaves them, made of chosen figures. Test
// only.
#ifndef VERBSCOPE_CORE_COMPARE_TESTING_H_
#define VERBSCOPE_CORE_COMPARE_TESTING_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/record/record.h"

namespace verbscope {

// A run whose percentiles are p50_ns times 1, 1.2 and 1.6.
inline Result LatencyRun(double p50_ns, uint32_t run, const std::string& side = "requester") {
  Result result;
  result.point.op = "send";
  result.point.size_bytes = 64;
  result.point.wait = "busy";
  result.side = side;
  result.run = run;
  LatencyMetrics& latency = result.metrics.latency.emplace();
  latency.definition = "half_round_trip";
  latency.ended_by = "recv_completion";
  latency.samples = 20'000;
  latency.mean_ns = p50_ns * 1.05;
  latency.max_ns = std::llround(p50_ns * 10);
  const auto row = [p50_ns](const char* percent, double factor) {
    return PercentileRow{
        .percent = percent, .value_ns = std::llround(p50_ns * factor), .interval = {}};
  };
  latency.percentiles = {row("50", 1), row("99", 1.2), row("99.9", 1.6)};
  for (int64_t tenth = 0; tenth < 10; ++tenth) {
    const int64_t at_ns = std::llround(p50_ns * (0.9 + 0.02 * static_cast<double>(tenth)));
    latency.buckets.push_back({.from_ns = at_ns, .to_ns = at_ns, .count = 2000});
  }
  return result;
}

inline Record Report(const std::string& command) {
  Record record;
  record.command = command;
  record.verdict = "pass";
  record.exit_code = 0;
  record.plan.emplace().command = command;
  record.local.role = "requester";
  record.local.host = "node-a";
  record.local.kernel = "6.1.0";
  record.local.cpu = "a processor";
  record.local.device.emplace().firmware = "20.39";
  record.remote = record.local;
  record.remote->role = "responder";
  record.remote->host = "node-b";
  return record;
}

inline Record LatencyReport(const std::vector<double>& p50s_ns) {
  Record record = Report("send-lat");
  for (uint32_t run = 0; run < p50s_ns.size(); ++run) {
    record.results.push_back(LatencyRun(p50s_ns[run], run));
  }
  return record;
}

inline Result BandwidthRun(const std::string& op, double gbit_per_s, uint32_t run,
                           const std::string& side = "requester") {
  Result result;
  result.point.op = op;
  result.point.size_bytes = 65536;
  result.point.tx_depth = 128;
  result.point.wait = "busy";
  result.side = side;
  result.run = run;
  result.metrics.bandwidth = BandwidthMetrics{.bytes = 1'000'000'000,
                                              .messages = 15'259,
                                              .seconds = 1,
                                              .gbit_per_s = gbit_per_s,
                                              .msg_per_s = gbit_per_s * 1e9 / 8 / 65536};
  return result;
}

// `centre` times 1 ± a little: so many values that do not repeat.
inline std::vector<double> Around(double centre, size_t runs, double spread = 0.004) {
  std::vector<double> values;
  for (size_t i = 0; i < runs; ++i) {
    const double at = (static_cast<double>(i * 7 % runs) + 0.5) / static_cast<double>(runs) - 0.5;
    values.push_back(centre * (1 + 2 * spread * at));
  }
  return values;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_TESTING_H_
