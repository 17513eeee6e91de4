// What an assertion is about: a figure of a result, in one unit.
//
// Pure functions, any thread.
#ifndef VERBSCOPE_CORE_GATES_METRIC_H_
#define VERBSCOPE_CORE_GATES_METRIC_H_

#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/statistics/rank.h"

namespace verbscope {

enum class MetricKind {
  kMin,
  kMax,
  kMean,
  kStdev,
  kPercentile,   // "p99.9"
  kBandwidth,    // "bw"
  kMessageRate,  // "msgrate"
  kCpu,          // of one CPU per measuring thread
  kErrors,       // of the run: checks that failed, and the error that broke it
  kCount,        // samples or messages
  kCounter,      // "counter.NAME": of the device, the change over the measured part
  kLostWakeups,
};

struct GateMetric {
  MetricKind kind = MetricKind::kMean;
  std::optional<Percentile> percentile = {};  // kPercentile only
  std::string counter = {};                   // kCounter only

  bool is_latency() const { return kind <= MetricKind::kPercentile; }
  // Whole numbers of things, which may be compared for equality.
  bool is_count() const { return kind >= MetricKind::kErrors; }
  // Of the run as a whole, not of a result.
  bool is_of_run() const { return kind == MetricKind::kErrors; }
  friend bool operator==(const GateMetric&, const GateMetric&) = default;
};

// "p99.9", "bw", "counter.out_of_sequence" and back. kUsage for anything else, with the words that
// are known.
Expected<GateMetric> ParseGateMetric(std::string_view text);
std::string ToText(const GateMetric& metric);

// Of values in records and limits: "ns", "Gb/s", "/s", "%"; empty for a number of things.
std::string_view UnitOf(const GateMetric& metric);

// "5us", "90Gb/s", "1.5M/s", "30%", "0" in UnitOf(metric). kUsage without a unit, with a wrong one
// (naming those that fit), or for what is no number of 0 or more.
Expected<double> ParseGateValue(const GateMetric& metric, std::string_view text);

// Whether a command's results can have the metric at all.
bool CanYield(std::string_view command, const GateMetric& metric);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_GATES_METRIC_H_
