#include "cmd/run_line.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/host/host.h"
#include "core/plan/step_commands.h"
#include "core/record/percentile.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

// ", 14 of 15 checks passed, failed: write-imm-64".
std::string ChecksText(const std::vector<CheckRow>& checks) {
  const auto good = std::ranges::count_if(checks, [](const CheckRow& check) {
    return check.status == "pass" || check.status == "deviation";
  });
  std::string text = fmt::format(", {} of {} checks passed", good, checks.size());
  const auto failed = std::ranges::find(checks, "fail", &CheckRow::status);
  if (failed != checks.end()) text += ", failed: " + Printable(failed->name);
  return text;
}

std::string MedianText(const LatencyMetrics& latency) {
  const std::optional<int64_t> median_ns = AtPercent(latency, "50");
  return median_ns ? fmt::format(", p50 {:.2f} us", static_cast<double>(*median_ns) * 1e-3) : "";
}

std::string RateText(const BandwidthMetrics& bandwidth) {
  if (bandwidth.gbit_per_s) return fmt::format(", {:.3f} Gb/s", *bandwidth.gbit_per_s);
  return bandwidth.msg_per_s ? fmt::format(", {:.0f} messages/s", *bandwidth.msg_per_s) : "";
}

// ", 100000 samples, p50 6.10 us" or ", 5000 messages, 91.200 Gb/s": the figure is of the first
// result. Of the client's results, which some commands alone have; of this side's when the client's
// did not come.
std::string MeasuredText(const std::vector<Result>& results) {
  const auto measures = [](const Result& result) {
    return result.metrics.latency || result.metrics.bandwidth;
  };
  const bool has_clients = std::ranges::any_of(results, [&](const Result& result) {
    return result.side == "requester" && measures(result);
  });
  const std::string_view side = has_clients ? "requester" : "responder";
  uint64_t count = 0;
  std::string unit = "samples";
  std::string figure;
  for (const Result& result : results) {
    if (result.side != side || !measures(result)) continue;
    const Metrics& metrics = result.metrics;
    count += metrics.latency ? metrics.latency->samples : metrics.bandwidth->messages;
    if (metrics.bandwidth) unit = "messages";
    if (figure.empty()) {
      figure = metrics.latency ? MedianText(*metrics.latency) : RateText(*metrics.bandwidth);
    }
  }
  return fmt::format(", {} {}{}", count, unit, figure);
}

}  // namespace

std::string RunLine(const Record& record, const std::string& client) {
  std::string line = fmt::format("{} {} {}", Rfc3339UtcNow(), client,
                                 record.plan ? record.plan->command : "no plan");
  if (record.plan && !record.plan->sizes_bytes.empty()) {
    line += record.plan->sizes_bytes.size() == 1
                ? fmt::format(" {} B", record.plan->sizes_bytes.front())
                : fmt::format(" {} sizes", record.plan->sizes_bytes.size());
  }
  const bool steps = record.plan && FindStepCommand(record.plan->command) != nullptr;
  line +=
      ": " + record.verdict + (steps ? ChecksText(record.checks) : MeasuredText(record.results));
  if (record.error) {
    line += fmt::format(", {}{}", record.error->side == Side::kPeer ? "the client reports: " : "",
                        record.error->ToText());
  }
  return line;
}

}  // namespace verbscope
