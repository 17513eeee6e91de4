#include "reporters/result_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/record/point_text.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

std::string Text(const std::optional<std::string>& text) {
  return text ? Printable(*text) : std::string();
}

bool Measured(const Result& result) {
  const Metrics& metrics = result.metrics;
  return (metrics.latency && metrics.latency->samples > 0) ||
         (metrics.bandwidth && metrics.bandwidth->messages > 0) ||
         (metrics.cost && metrics.cost->calls > 0) ||
         (metrics.rnr && !metrics.rnr->attempts.empty()) ||
         (metrics.overrun && metrics.overrun->outstanding > 0);
}

}  // namespace

std::vector<NamedText> PointColumns(const Point& point) {
  return {{"op", Printable(point.op)},
          {"size_bytes", std::to_string(point.size_bytes)},
          {"qps", std::to_string(point.qps)},
          {"cqs", NumberText(point.cqs)},
          {"threads", NumberText(point.threads)},
          {"cq_depth", NumberText(point.cq_depth)},
          {"wait", Printable(point.wait)},
          {"spin_ns", NumberText(point.spin_ns)},
          {"rate_per_s", NumberText(point.rate_per_s)},
          {"busy_share_percent", NumberText(point.busy_share_percent)},
          {"moderation", Text(point.moderation)},
          {"tx_depth", NumberText(point.tx_depth)},
          {"timer_code", NumberText(point.timer_code)},
          {"imm", NumberText(point.imm)},
          {"atomic_op", Text(point.atomic_op)},
          {"bidirectional", NumberText(point.bidirectional)},
          {"post_list", NumberText(point.post_list)},
          {"inline", NumberText(point.inline_data)},
          {"signal_every", NumberText(point.signal_every)},
          {"variant", Text(point.variant)}};
}

std::string ResultName(const Record& record, const Result& result) {
  Point point = result.point;
  // A rate that is a share of what busy polling sustained differs from day to day: the share is
  // what stays.
  if (point.busy_share_percent) point.rate_per_s.reset();
  std::string name = fmt::format("{}: {}", record.command, PointText(point));
  name += ", " + result.side;
  if (result.set) name += ", set " + *result.set;
  if (result.run > 0) name += fmt::format(", run {}", result.run);
  return Printable(name);
}

std::string UniqueNames::Take(const std::string& name) {
  const int number = ++seen_[name];
  // What is made here may itself be taken already.
  return number == 1 ? name : Take(fmt::format("{} ({})", name, number));
}

std::string NumberText(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : std::string();
}

bool HasEvidence(const Record& record) {
  return !record.checks.empty() || !record.devices.empty() ||
         (record.comparison && !record.comparison->rows.empty()) ||
         std::ranges::any_of(record.results, Measured);
}

}  // namespace verbscope
