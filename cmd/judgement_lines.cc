#include "cmd/judgement_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "core/record/count_text.h"
#include "core/record/point_text.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

std::string ValueText(const std::optional<double>& value, const std::string& unit) {
  if (!value) return "not known";
  if (unit == "ns") {
    for (const auto& [name, ns] : {std::pair("s", 1e9), {"ms", 1e6}, {"us", 1e3}}) {
      if (*value >= ns) return fmt::format("{:.4g} {}", *value / ns, name);
    }
  }
  return unit.empty() ? fmt::format("{:.6g}", *value) : fmt::format("{:.6g} {}", *value, unit);
}

std::string CheckLine(const CheckRow& check) {
  return fmt::format(
      "check failed: {}: {}{}; expected {}", Printable(check.name), Printable(check.observed),
      check.why.empty() ? "" : " (" + Printable(check.why) + ")", Printable(check.expected));
}

std::string GateLine(const GateRow& gate) {
  const GateOutcome& outcome = gate.outcome;
  std::string line = fmt::format(
      "assertion {}: {}: observed {}", outcome.status == "fail" ? "failed" : "not decided",
      Printable(gate.expression), ValueText(outcome.observed, gate.unit));
  if (outcome.bound && outcome.bound != outcome.observed) {
    line += ", 95 % bound " + ValueText(outcome.bound, gate.unit);
  }
  if (outcome.limit) line += ", limit " + ValueText(outcome.limit, gate.unit);
  if (outcome.samples) line += fmt::format(", {} samples", CountText(*outcome.samples));
  if (outcome.effective_samples && outcome.effective_samples != outcome.samples) {
    line += fmt::format(" worth {} independent ones", CountText(*outcome.effective_samples));
  }
  if (outcome.samples_needed) {
    line += fmt::format(", {} needed", CountText(*outcome.samples_needed));
  }
  if (!outcome.why.empty()) line += "; " + Printable(outcome.why);
  return line;
}

std::string WorseLine(const ComparisonRow& row) {
  return fmt::format("worse: {} of {} ({}): {} times the base, 95 % interval {} to {}",
                     Printable(row.metric), Printable(PointText(row.point)), Printable(row.side),
                     row.ratio ? fmt::format("{:.3f}", *row.ratio) : "?",
                     row.ratio_low ? fmt::format("{:.3f}", *row.ratio_low) : "?",
                     row.ratio_high ? fmt::format("{:.3f}", *row.ratio_high) : "?");
}

}  // namespace

std::vector<std::string> JudgementLines(const Record& record) {
  std::vector<std::string> lines;
  const auto check = std::ranges::find(record.checks, "fail", &CheckRow::status);
  if (check != record.checks.end()) lines.push_back(CheckLine(*check));
  for (const std::string_view status : {"fail", "inconclusive"}) {
    const auto gate = std::ranges::find_if(
        record.gates, [status](const GateRow& row) { return row.outcome.status == status; });
    if (gate != record.gates.end()) lines.push_back(GateLine(*gate));
  }
  if (!record.comparison) return lines;
  for (const ComparisonRow& row : record.comparison->rows) {
    if (row.gated && row.verdict == "worse") lines.push_back(WorseLine(row));
  }
  return lines;
}

}  // namespace verbscope
