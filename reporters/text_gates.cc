// The assertions of a run: a line each, and what each result that did not pass had.
#include <fmt/core.h>

#include <string>

#include "core/record/point_text.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

// Times are read in their own unit, all else in that of the row.
std::string ValueText(const std::optional<double>& value, const std::string& unit,
                      const Canvas& canvas) {
  if (!value) return "-";
  if (unit == "ns") return TimeText(*value);
  return fmt::format("{:.6g}{}{}", *value, unit.empty() || unit == "/s" || unit == "%" ? "" : " ",
                     canvas.Safe(unit));
}

std::string OutcomeText(const GateOutcome& outcome, const std::string& unit, const Canvas& canvas) {
  std::string text = "observed " + ValueText(outcome.observed, unit, canvas);
  if (outcome.bound && outcome.bound != outcome.observed) {
    text += ", 95 % bound " + ValueText(outcome.bound, unit, canvas);
  }
  if (outcome.limit) text += ", limit " + ValueText(outcome.limit, unit, canvas);
  if (outcome.samples) text += ", " + Plural(*outcome.samples, "sample");
  if (outcome.effective_samples && outcome.effective_samples != outcome.samples) {
    text += fmt::format(" ({} effective)", CountText(*outcome.effective_samples));
  }
  if (outcome.status == "inconclusive" && outcome.samples_needed) {
    text += fmt::format(", {} needed", CountText(*outcome.samples_needed));
  }
  return text;
}

}  // namespace

void DrawGates(const std::vector<GateRow>& gates, Canvas& canvas) {
  constexpr size_t kIndent = 16;
  if (gates.empty()) return;
  canvas.Blank();
  for (const GateRow& gate : gates) {
    const std::string& status = gate.outcome.status;
    canvas.Hanging("  " + canvas.In(MarkInk(status), PadRight(Mark(status), 12)) + "  ", kIndent,
                   canvas.Safe(gate.expression));
    canvas.Wrapped(kIndent, OutcomeText(gate.outcome, gate.unit, canvas));
    if (!gate.outcome.why.empty()) canvas.Wrapped(kIndent, canvas.Safe(gate.outcome.why));
    if (gate.results.size() < 2) continue;
    for (const GateResult& result : gate.results) {
      const GateOutcome& outcome = result.outcome;
      if (outcome.status == "pass" && !canvas.options().verbose) continue;
      canvas.Wrapped(kIndent,
                     fmt::format("{}: {}, {}, run {}: {}", Mark(outcome.status),
                                 canvas.Safe(PointText(result.point)), canvas.Safe(result.side),
                                 result.run, OutcomeText(outcome, gate.unit, canvas)));
    }
  }
}

}  // namespace verbscope
