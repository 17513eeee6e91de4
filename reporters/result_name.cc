#include "reporters/result_name.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/record/point_members.h"
#include "core/record/point_text.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

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
  std::vector<NamedText> columns;
  for (const auto& [name, text] : PointMembers(point)) {
    columns.push_back({name, text ? Printable(*text) : std::string()});
  }
  return columns;
}

std::string ResultName(const Record& record, const Result& result) {
  std::string name = fmt::format("{}: {}", record.command, PointText(Identity(result.point)));
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
