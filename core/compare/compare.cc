#include "core/compare/compare.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "core/compare/causes.h"
#include "core/compare/figures.h"
#include "core/compare/point_key.h"
#include "core/compare/run_table.h"
#include "core/compare/shifts.h"
#include "core/compare/verdict.h"
#include "core/record/outcome.h"
#include "core/record/point_text.h"

namespace verbscope {
namespace {

std::string NameOf(const std::vector<std::string>& files, size_t i, std::string_view set) {
  return i < files.size() ? files[i] : fmt::format("report {} of the {} set", i + 1, set);
}

// What makes one report useless for a comparison; empty: nothing does.
std::string Flaw(const Record& record) {
  if (record.error) return "ended with an error: " + record.error->message;
  if (record.comparison && record.results.empty()) return "is itself a comparison";
  if (record.results.empty()) return "holds no results";
  for (const Result& result : record.results) {
    if (!result.complete) {
      return fmt::format("holds a run that broke: run {} of \"{}\"", result.run,
                         PointText(result.point));
    }
    if (result.set != record.results.front().set) {
      return "holds both sets of an interleaved comparison, whose verdict is in it";
    }
  }
  return {};
}

Status CheckReports(std::span<const Record> records, const std::vector<std::string>& files,
                    std::string_view set, const Record& first, const std::string& first_name) {
  if (records.empty()) return Fail(UsageError(fmt::format("the {} set has no report", set)));
  for (size_t i = 0; i < records.size(); ++i) {
    const std::string name = NameOf(files, i, set);
    if (const std::string flaw = Flaw(records[i]); !flaw.empty()) {
      return Fail(UsageError(name + " " + flaw, {}, "leave it out, or measure again"));
    }
    if (records[i].command != first.command) {
      return Fail(UsageError(fmt::format("{} is a report of {}, and {} one of {}", name,
                                         records[i].command, first_name, first.command),
                             "different commands measure different things",
                             "compare reports of one command"));
    }
  }
  return {};
}

Status CheckParameters(const std::vector<SetDifference>& parameters,
                       const CompareOptions& options) {
  if (options.join_by_order) return {};
  std::vector<std::string> texts;
  std::vector<std::string> names;
  for (const SetDifference& difference : parameters) {
    if (IsAllowed(options.allowed, difference)) continue;
    texts.push_back(
        fmt::format("{} ({}, new {})", difference.field, difference.base, difference.fresh));
    names.push_back(difference.field.substr(difference.field.find('.') + 1));
  }
  if (texts.empty()) return {};
  return Fail(UsageError(
      fmt::format("the sets differ in what was asked for: {}", fmt::join(texts, "; ")),
      "what comes of it would be the difference between the questions",
      fmt::format("--allow-diff {} if that is what you want to compare", fmt::join(names, ","))));
}

std::string NamesOf(const std::vector<std::string>& files, size_t reports, std::string_view set) {
  if (files.empty()) return fmt::format("{} reports of the {} set", reports, set);
  return fmt::format("{}", fmt::join(files, ", "));
}

double MarginOf(const Figure& figure, const JoinedRuns& runs, const Margins& margins,
                double base_median) {
  constexpr double kFloorNs = 50;
  constexpr double kClockSteps = 2;
  const auto own = margins.by_metric.find(figure.metric);
  const double share = own == margins.by_metric.end() ? margins.share : own->second;
  // No margin at all was asked for.
  if (share == 0 || figure.kind != FigureKind::kTime || base_median <= 0) return share;
  constexpr double kMost = 1e6;  // a time that is next to nothing
  return std::min(kMost, std::max({share, kFloorNs / base_median,
                                   kClockSteps * runs.clock_step_ns / base_median}));
}

struct Judged {
  std::vector<ComparisonRow> rows;
  std::vector<Evidence> evidence;
};

void AddRows(const JoinedRuns& runs, bool gates, const Margins& margins, Judge& judge,
             Judged& judged) {
  for (const Figure& figure : FiguresOf(runs, gates)) {
    ComparisonRow row;
    row.point = runs.point;
    row.side = runs.side;
    row.metric = figure.metric;
    row.unit = figure.unit;
    row.gated = figure.gated;
    const double margin = MarginOf(figure, runs, margins, MedianOf(figure.base));
    judged.evidence.push_back(
        judge.Weigh(figure.base, figure.fresh, margin, figure.less_is_better, row));
    if (figure.base.size() < runs.base.size() || figure.fresh.size() < runs.fresh.size()) {
      row.why = fmt::format("{} of {} and {} of {} runs have samples enough to state it{}{}",
                            figure.base.size(), runs.base.size(), figure.fresh.size(),
                            runs.fresh.size(), row.why.empty() ? "" : "; ", row.why);
    }
    judged.rows.push_back(std::move(row));
  }
}

// The same point as each side saw it. Each may wait in its own way: where no row of the other side
// is quite the same, the one that differs in that alone is meant.
std::vector<const JoinedRuns*> SidesOf(const JoinedRuns& runs, const RunTable& table) {
  const auto others = [&](const std::set<std::string>& ignored) {
    std::vector<const JoinedRuns*> found;
    for (const JoinedRuns& row : table.rows) {
      const bool same = PointKey(row.point, ignored) == PointKey(runs.point, ignored);
      if (row.side != runs.side && same) found.push_back(&row);
    }
    return found;
  };
  std::vector<const JoinedRuns*> sides = others({});
  if (sides.empty()) sides = others({"wait", "spin_ns"});
  if (sides.size() > 1) sides.clear();  // which of them it was is not known
  sides.insert(sides.begin(), &runs);
  return sides;
}

bool Changed(const JoinedRuns& runs, const std::vector<ComparisonRow>& rows) {
  return std::ranges::any_of(rows, [&runs](const ComparisonRow& row) {
    return row.gated && (row.verdict == "worse" || row.verdict == "better") &&
           row.side == runs.side && row.point == runs.point;
  });
}

void AddCauses(const RunTable& table, Comparison& comparison) {
  std::vector<const JoinedRuns*> changed;
  for (const JoinedRuns& runs : table.rows) {
    if (Changed(runs, comparison.rows)) changed.push_back(&runs);
  }
  std::set<const JoinedRuns*> told;
  for (const JoinedRuns* runs : changed) {
    if (told.contains(runs)) continue;  // as the other side of one before
    const std::vector<const JoinedRuns*> sides = SidesOf(*runs, table);
    told.insert(sides.begin(), sides.end());
    for (const std::string& cause : CausesOf(sides)) {
      comparison.causes.push_back(
          changed.size() == 1 ? cause : fmt::format("{}: {}", PointText(runs->point), cause));
    }
  }
}

Error NothingInCommon(const RunTable& table) {
  std::string seen;
  for (size_t i = 0; i < std::min<size_t>(table.unmatched.size(), 4); ++i) {
    seen += (seen.empty() ? "" : "; ") + table.unmatched[i];
  }
  return UsageError("the sets have no result in common", std::move(seen),
                    "compare reports of the same points");
}

}  // namespace

Expected<Margins> ParseMargins(const std::vector<std::string>& texts) {
  constexpr double kMostPercent = 1000;
  Margins margins;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    const std::string metric = equals == std::string::npos ? "" : text.substr(0, equals);
    std::string_view number = text;
    if (equals != std::string::npos) number.remove_prefix(equals + 1);
    double percent = -1;
    const auto [end, problem] =
        std::from_chars(number.data(), number.data() + number.size(), percent);
    if (problem != std::errc() || end != number.data() + number.size() || !(percent >= 0) ||
        percent > kMostPercent) {
      return Fail(UsageError(
          fmt::format("--margin {}: not a percentage from 0 to {:.0f}", text, kMostPercent), {},
          "3, or p99=5 for one metric"));
    }
    const std::vector<std::string>& names = MetricNames();
    if (equals != std::string::npos && std::ranges::find(names, metric) == names.end()) {
      return Fail(UsageError(fmt::format("--margin {}: there is no such metric", text),
                             fmt::format("known are {}", fmt::join(names, ", "))));
    }
    (metric.empty() ? margins.share : margins.by_metric[metric]) = percent / 100;
  }
  return margins;
}

Expected<Comparison> Compare(std::span<const Record> base, std::span<const Record> fresh,
                             const CompareOptions& options) {
  const Record none;
  const Record& first = base.empty() ? none : base.front();
  const std::string first_name = NameOf(options.base_files, 0, "base");
  Status status = CheckReports(base, options.base_files, "base", first, first_name);
  if (status) status = CheckReports(fresh, options.new_files, "new", first, first_name);
  if (!status) return Fail(std::move(status.error()));

  Comparison comparison;
  comparison.base_name = NamesOf(options.base_files, base.size(), "base");
  comparison.new_name = NamesOf(options.new_files, fresh.size(), "new");
  comparison.parameters = ParameterDifferences(base, fresh);
  comparison.environment = EnvironmentDifferences(base, fresh);
  status = CheckParameters(comparison.parameters, options);
  if (!status) return Fail(std::move(status.error()));

  const std::set<std::string> ignored = options.join_by_order
                                            ? std::set<std::string>()
                                            : IgnoredMembers(options.allowed, base, fresh);
  Expected<RunTable> table = JoinRuns(base, fresh, ignored, options.join_by_order);
  if (!table) return Fail(std::move(table.error()));
  if (table->rows.empty()) return Fail(NothingInCommon(*table));
  Judge judge;
  Judged judged;
  for (const JoinedRuns& runs : table->rows) {
    const bool gates = SideGates(runs, *table);
    AddRows(runs, gates, options.margins, judge, judged);
    if (!gates) continue;
    for (std::string& lack : LackingFigures(runs)) table->unmatched.push_back(std::move(lack));
    for (ShiftRow& shift : ShiftsOf(runs)) comparison.shifts.push_back(std::move(shift));
  }
  if (judged.rows.empty()) {
    return Fail(UsageError("the sets have no figure in common",
                           "their results hold neither latencies nor rates"));
  }
  Decide(judged.evidence, judged.rows);
  comparison.rows = std::move(judged.rows);
  comparison.unmatched = std::move(table->unmatched);
  AddCauses(*table, comparison);
  return comparison;
}

bool AnyWorse(const Comparison& comparison) {
  return std::ranges::any_of(comparison.rows, [](const ComparisonRow& row) {
    return row.gated && row.verdict == "worse";
  });
}

bool AnyUndecided(const Comparison& comparison) {
  const auto gated = [](const ComparisonRow& row) { return row.gated; };
  return std::ranges::none_of(comparison.rows, gated) ||
         std::ranges::any_of(comparison.rows, [](const ComparisonRow& row) {
           return row.gated && row.verdict == "undecided";
         });
}

void JudgeComparison(bool require_decision, Record& record) {
  const bool open = require_decision && AnyUndecided(*record.comparison);
  SetOutcome(AnyWorse(*record.comparison) ? "fail" : open ? "inconclusive" : "pass", record);
}

}  // namespace verbscope
