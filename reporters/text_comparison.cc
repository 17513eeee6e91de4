// What came of comparing two sets of runs: what differs besides, the verdict of each metric, where
// distributions moved, and what moved with them.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/record/point_text.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

constexpr size_t kMetricColumns = 8;
constexpr size_t kValueColumns = 11;
constexpr size_t kMostUnmatched = 8;
constexpr uint64_t kFewestRuns = 5;  // of each set, for a verdict

bool Changed(const ComparisonRow& row) { return row.verdict == "worse" || row.verdict == "better"; }

Ink VerdictInk(const ComparisonRow& row) {
  if (!row.gated) return Ink::kDim;
  if (row.verdict == "worse") return Ink::kRed;
  if (row.verdict == "better" || row.verdict == "same") return Ink::kGreen;
  return Ink::kYellow;
}

std::string ValueText(const std::optional<double>& value, const std::string& unit,
                      const Canvas& canvas) {
  if (!value) return "-";
  if (unit == "ns") return TimeText(*value);
  if (unit == "/s" && *value >= 0 && *value < 1e18) {
    return ShortCountText(static_cast<uint64_t>(std::llround(*value))) + "/s";
  }
  return fmt::format("{:.4g} {}", *value, canvas.Safe(unit));
}

// Right-aligned, and cut where it would run into the column before.
std::string Right(std::string text, size_t columns) {
  std::string cut = Cell(std::move(text), columns);
  cut.erase(cut.find_last_not_of(' ') + 1);
  return PadLeft(cut, columns);
}

std::string RatioText(const std::optional<double>& ratio) {
  if (!ratio) return "-";
  if (*ratio < 100) return fmt::format("{:.3f}", *ratio);
  return *ratio < 1e5 ? fmt::format("{:.0f}", *ratio) : fmt::format("{:.0e}", *ratio);
}

std::string IntervalText(const ComparisonRow& row) {
  if (!row.ratio_low || !row.ratio_high) return "-";
  return RatioText(row.ratio_low) + " to " + RatioText(row.ratio_high);
}

// "+5.1 %", of a ratio; "17.5 times" where percent would be hard to read.
std::string ChangeText(double ratio) {
  constexpr double kManyTimes = 10;
  constexpr double kLong = 1e5;
  if (ratio < kManyTimes) return fmt::format("{:+.1f} %", 100 * (ratio - 1));
  return ratio < kLong ? fmt::format("{:.1f} times", ratio) : fmt::format("{:.0e} times", ratio);
}

std::string MarginText(double margin) {
  return margin < 10 ? fmt::format("{:.1f} %", 100 * margin)
                     : fmt::format("{:.0e} %", 100 * margin);
}

void DrawDifferences(std::string_view title, const std::vector<SetDifference>& differences,
                     Canvas& canvas) {
  if (differences.empty()) return;
  canvas.Blank();
  canvas.Wrapped(0, title, Ink::kBold);
  for (const SetDifference& row : differences) {
    canvas.Wrapped(2, fmt::format("{}: {} -> {}", canvas.Safe(row.field), canvas.Safe(row.base),
                                  canvas.Safe(row.fresh)));
  }
}

void DrawUnmatched(const std::vector<std::string>& unmatched, Canvas& canvas) {
  if (unmatched.empty()) return;
  canvas.Blank();
  const size_t shown =
      canvas.options().verbose ? unmatched.size() : std::min(unmatched.size(), kMostUnmatched);
  for (size_t i = 0; i < shown; ++i) canvas.Wrapped(2, canvas.Safe(unmatched[i]), Ink::kYellow);
  if (shown < unmatched.size()) {
    canvas.Wrapped(2, fmt::format("and {} more of one set only", unmatched.size() - shown),
                   Ink::kYellow);
  }
}

// Why it is not decided and what would decide it.
void DrawUndecided(const ComparisonRow& row, Canvas& canvas) {
  if (row.verdict != "undecided" || !row.gated) return;
  const uint64_t runs = std::min(row.base_runs, row.new_runs);
  std::string text = canvas.Safe(row.why);
  if (row.runs_needed && *row.runs_needed > runs) {
    const uint64_t missing = *row.runs_needed - runs;
    text += fmt::format(
        "{}{} more {} of each set, {} in all, {}", text.empty() ? "" : "; ", CountText(missing),
        missing == 1 ? "run" : "runs", CountText(*row.runs_needed),
        row.ratio_low && runs >= kFewestRuns ? "would decide it if runs vary as these do"
                                             : "are the fewest that can decide it");
  }
  if (!text.empty()) canvas.Wrapped(2 + kMetricColumns, text, Ink::kDim);
}

void DrawRow(const ComparisonRow& row, Canvas& canvas) {
  constexpr size_t kVerdictColumns = 11;  // "(undecided)"
  std::string verdict = canvas.Safe(row.verdict);
  if (!row.gated) verdict = "(" + verdict + ")";
  canvas.Line("  " + Cell(canvas.Safe(row.metric), kMetricColumns) +
              Right(ValueText(row.base, row.unit, canvas), kValueColumns) +
              Right(ValueText(row.fresh, row.unit, canvas), kValueColumns) +
              Right(RatioText(row.ratio), 9) + PadLeft(IntervalText(row), 17) +
              Right(MarginText(row.margin), 9) + "  " +
              canvas.In(VerdictInk(row), Cell(verdict, kVerdictColumns + 1)));
  DrawUndecided(row, canvas);
  if (canvas.options().verbose && row.p_worse) {
    canvas.Wrapped(2 + kMetricColumns,
                   fmt::format("{} and {} runs, p of not worse {:.4f}", row.base_runs, row.new_runs,
                               *row.p_worse),
                   Ink::kDim);
  }
}

std::string RunsText(const ComparisonRow& row) {
  return fmt::format("{} against {}", CountText(row.base_runs), Plural(row.new_runs, "run"));
}

void DrawShifts(const Comparison& comparison, const ComparisonRow& of, Canvas& canvas) {
  std::vector<const ShiftRow*> rows;
  for (const ShiftRow& shift : comparison.shifts) {
    if (shift.point == of.point && shift.side == of.side) rows.push_back(&shift);
  }
  if (rows.empty()) return;
  canvas.Blank();
  canvas.Wrapped(2, "where it moved (medians of the runs)", Ink::kDim);
  for (const ShiftRow* row : rows) {
    const double base = static_cast<double>(row->base_ns);
    const double fresh = static_cast<double>(row->fresh_ns);
    canvas.Line("  " + Cell(canvas.Safe("p" + row->percent), kMetricColumns) +
                PadLeft(TimeText(base), kValueColumns) + PadLeft(TimeText(fresh), kValueColumns) +
                PadLeft(base > 0 ? ChangeText(fresh / base) : "-", 13));
  }
}

// The rows of one point as one side saw it: they follow each other.
void DrawPoint(const Comparison& comparison, size_t from, size_t to, bool only, Canvas& canvas) {
  const ComparisonRow& first = comparison.rows[from];
  const bool gated = first.gated;  // gated rows come first
  if (!gated && !canvas.options().verbose) return;
  canvas.Blank();
  canvas.Wrapped(0,
                 fmt::format("{}, {}: {}", canvas.Safe(PointText(first.point)),
                             canvas.Safe(first.side), RunsText(first)),
                 Ink::kBold);
  canvas.Line(
      canvas.In(Ink::kDim, "  " + PadRight("", kMetricColumns) + PadLeft("base", kValueColumns) +
                               PadLeft("new", kValueColumns) + PadLeft("ratio", 9) +
                               PadLeft("95 % interval", 17) + PadLeft("margin", 9) + "  verdict"));
  bool changed = false;
  for (size_t i = from; i < to; ++i) {
    DrawRow(comparison.rows[i], canvas);
    changed = changed || (comparison.rows[i].gated && Changed(comparison.rows[i]));
  }
  if (only || changed || canvas.options().verbose) DrawShifts(comparison, first, canvas);
}

void DrawPoints(const Comparison& comparison, Canvas& canvas) {
  const std::vector<ComparisonRow>& rows = comparison.rows;
  const auto same = [](const ComparisonRow& a, const ComparisonRow& b) {
    return a.side == b.side && a.point == b.point;
  };
  const auto gated = [](const ComparisonRow& row) { return row.gated; };
  const auto first = std::ranges::find_if(rows, gated);
  const bool only = std::ranges::all_of(
      rows, [&](const ComparisonRow& row) { return !row.gated || same(row, *first); });
  for (size_t from = 0; from < rows.size();) {
    size_t to = from + 1;
    while (to < rows.size() && same(rows[from], rows[to])) ++to;
    DrawPoint(comparison, from, to, only, canvas);
    from = to;
  }
  canvas.Blank();
  canvas.Wrapped(2,
                 "ratio: new over base (Hodges-Lehmann); margin: smaller changes are none; same: "
                 "proven to lie within it; in brackets: shown, not gated",
                 Ink::kDim);
}

std::string Named(const ComparisonRow& row, const Canvas& canvas) {
  return fmt::format("{} of {}", canvas.Safe(row.metric), canvas.Safe(PointText(row.point)));
}

// The one sentence to read. The worst: whose change is the largest.
void DrawClosing(const Comparison& comparison, Canvas& canvas) {
  const ComparisonRow* worst = nullptr;
  size_t gated = 0;
  size_t worse = 0;
  size_t undecided = 0;
  size_t better = 0;
  const auto size = [](const ComparisonRow& row) {
    return std::abs(std::log(row.ratio.value_or(1)));
  };
  for (const ComparisonRow& row : comparison.rows) {
    if (!row.gated) continue;
    ++gated;
    better += row.verdict == "better" ? 1 : 0;
    undecided += row.verdict == "undecided" ? 1 : 0;
    if (row.verdict != "worse") continue;
    ++worse;
    if (worst == nullptr || size(row) > size(*worst)) worst = &row;
  }
  canvas.Blank();
  if (worst != nullptr) {
    const std::string others =
        worse > 1 ? fmt::format(", and {} more of {} gated metrics", worse - 1, gated) : "";
    const std::string change = worst->ratio ? ", " + ChangeText(*worst->ratio) : "";
    canvas.Wrapped(0, "WORSE: " + Named(*worst, canvas) + change + others, Ink::kRed);
  } else if (gated == 0) {
    canvas.Wrapped(0, "UNDECIDED: no metric that gates is in enough runs of both sets",
                   Ink::kYellow);
  } else if (undecided > 0) {
    canvas.Wrapped(0,
                   fmt::format("UNDECIDED: nothing is proven worse, {} of {} gated metrics {} "
                               "undecided",
                               undecided, gated, undecided == 1 ? "is" : "are"),
                   Ink::kYellow);
  } else if (better > 0) {
    canvas.Wrapped(0,
                   fmt::format("BETTER: {} of {} gated metrics{}", better, gated,
                               better < gated ? "; the others are the same" : ""),
                   Ink::kGreen);
  } else {
    canvas.Wrapped(0, "SAME: every gated metric is proven to lie within its margin", Ink::kGreen);
  }
}

}  // namespace

void DrawComparison(const Comparison& comparison, Canvas& canvas) {
  canvas.Blank();
  canvas.Labelled("base", canvas.Safe(comparison.base_name));
  canvas.Labelled("new", canvas.Safe(comparison.new_name));
  DrawDifferences("where the sets were made differs:", comparison.environment, canvas);
  DrawDifferences("what was asked for differs:", comparison.parameters, canvas);
  DrawUnmatched(comparison.unmatched, canvas);
  DrawPoints(comparison, canvas);
  if (!comparison.causes.empty()) {
    canvas.Blank();
    canvas.Wrapped(0, "what moved with it:", Ink::kBold);
    for (const std::string& cause : comparison.causes) canvas.Wrapped(2, canvas.Safe(cause));
  }
  DrawClosing(comparison, canvas);
}

}  // namespace verbscope
