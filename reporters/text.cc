#include "reporters/text.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "reporters/text_canvas.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

// One measurement is shown in full. What the responder saw of the same messages follows as a line;
// several measurements become tables.
void DrawResults(const Record& record, Canvas& canvas) {
  const bool verbose = canvas.options().verbose;
  if (record.modes) {
    DrawModes(record, canvas);
    if (!verbose) return;  // every run on its own is for whoever asks for all
  }
  DrawRnr(record.results, canvas);
  DrawCost(record.results, canvas);
  DrawScale(record.results, canvas);
  DrawOverrun(record.results, canvas);
  // Those have their tables; their histograms are for whoever asks for all.
  std::vector<Result> results;
  std::ranges::copy_if(record.results, std::back_inserter(results), [verbose](const Result& r) {
    const Metrics& metrics = r.metrics;
    const bool tabled = metrics.rnr || metrics.cost || metrics.scale || metrics.overrun;
    return !tabled || (verbose && (metrics.latency || metrics.bandwidth));
  });
  std::vector<Result> tabled;
  for (const Result& result : results) {
    if (Measures(result) && result.side == "responder") tabled.push_back(result);
  }
  const auto measuring = std::count_if(results.begin(), results.end(), Measures);
  const auto others = measuring - static_cast<std::ptrdiff_t>(tabled.size());
  if (others > 1 && !verbose) return DrawTable(results, canvas);
  if (verbose || others == 0) tabled.clear();
  for (const Result& result : results) {
    const bool later = Measures(result) && result.side == "responder" && !tabled.empty();
    if (!later && (measuring == 0 || IsWorthABlock(result, canvas))) DrawResult(result, canvas);
  }
  if (!tabled.empty()) DrawTable(tabled, canvas);
}

}  // namespace

std::string_view Mark(const std::string& status) {
  if (status == "pass") return "PASS";
  if (status == "fail") return "FAIL";
  if (status == "skip") return "skip";
  if (status == "deviation") return "DEVIATION";
  return status == "inconclusive" ? "INCONCLUSIVE" : "?";
}

Ink MarkInk(const std::string& status) {
  if (status == "pass") return Ink::kGreen;
  if (status == "fail") return Ink::kRed;
  return status == "skip" ? Ink::kDim : Ink::kYellow;
}

namespace {

void DrawParts(const std::vector<CheckPart>& parts, Canvas& canvas) {
  for (const CheckPart& part : parts) {
    const bool passed = part.status == "pass";
    if (passed && !canvas.options().verbose) continue;
    canvas.Wrapped(
        13, fmt::format(
                "{} {}{}{}", part.status, canvas.Safe(part.name),
                part.observed.empty() ? "" : ": " + canvas.Safe(part.observed),
                passed || part.expected.empty() ? "" : ", expected " + canvas.Safe(part.expected)));
  }
}

void DrawChecks(const std::vector<CheckRow>& checks, Canvas& canvas) {
  if (checks.empty()) return;
  canvas.Blank();
  for (const CheckRow& check : checks) {
    const std::string mark = PadRight(Mark(check.status), 9);
    canvas.Hanging("  " + canvas.In(MarkInk(check.status), mark) + "  ", 13,
                   canvas.Safe(check.name));
    // A check that passed shows what was seen; why that is right is in the documentation.
    const bool passed = check.status == "pass" && !canvas.options().verbose;
    if (passed) {
      if (!check.observed.empty()) canvas.Wrapped(13, canvas.Safe(check.observed), Ink::kDim);
      continue;
    }
    const auto detail = [&canvas](std::string_view label, const std::string& text) {
      if (!text.empty()) canvas.Wrapped(13, fmt::format("{}: {}", label, canvas.Safe(text)));
    };
    if (check.status != "skip") {
      detail("expected", check.expected);
      detail("observed", check.observed);
    }
    detail("why", check.why);
    detail("source", check.source);
    if (check.parts.size() > 1) DrawParts(check.parts, canvas);
  }
}

void DrawCatalog(const std::vector<CatalogRow>& catalog, Canvas& canvas) {
  for (const CatalogRow& row : catalog) {
    canvas.Hanging("  ", 4, canvas.Safe(row.name));
    canvas.Wrapped(6, canvas.Safe(row.does), Ink::kDim);
    canvas.Wrapped(6, "expected: " + canvas.Safe(row.expect));
    if (canvas.options().verbose) canvas.Wrapped(6, "source: " + canvas.Safe(row.source));
  }
}

// What the error does not say itself: its own cause stands above.
void DrawCauses(const Record& record, Canvas& canvas) {
  const std::string stated = record.error ? record.error->cause : "";
  bool first = true;
  for (const CauseRow& row : record.causes) {
    if (row.evidence.empty() && stated.find(row.cause) != stated.npos) continue;
    if (first) canvas.Blank();
    first = false;
    const std::string where = row.side == "both" ? "" : fmt::format(" ({})", canvas.Safe(row.side));
    canvas.Labelled("likely", canvas.Safe(row.cause) + where, Ink::kYellow);
    if (!row.evidence.empty()) canvas.Labelled("", "seen: " + canvas.Safe(row.evidence));
    if (!row.next_step.empty()) canvas.Labelled("", "next: " + canvas.Safe(row.next_step));
  }
}

void DrawCounterNotes(const Record& record, Canvas& canvas) {
  if (!record.counter_notes.empty()) canvas.Blank();
  for (const CounterNote& note : record.counter_notes) {
    canvas.Labelled("counter", fmt::format("{} {:+} ({}): {}", canvas.Safe(note.name), note.change,
                                           canvas.Safe(note.side), canvas.Safe(note.meaning)));
  }
}

void DrawEnd(const Record& record, Canvas& canvas) {
  DrawCounterNotes(record, canvas);
  if (!record.notices.empty()) canvas.Blank();
  for (const std::string& notice : record.notices) {
    canvas.Labelled("notice", canvas.Safe(notice), Ink::kYellow);
  }
  if (!record.error) return DrawCauses(record, canvas);
  const Error& error = *record.error;
  canvas.Blank();
  const std::string where = error.side == Side::kPeer ? "the peer says: " : "";
  canvas.Labelled("ERROR", where + canvas.Safe(error.message), Ink::kRed);
  if (!error.status.empty()) canvas.Labelled("status", canvas.Safe(error.status));
  if (!error.cause.empty()) canvas.Labelled("cause", canvas.Safe(error.cause));
  if (!error.next_step.empty()) canvas.Labelled("next", canvas.Safe(error.next_step));
  DrawCauses(record, canvas);
}

}  // namespace

std::string RenderText(const Record& record, const TextOptions& options) {
  Canvas canvas(options);
  DrawTitle(record, canvas);
  if (!record.catalog.empty()) {
    DrawCatalog(record.catalog, canvas);
    return canvas.Take();
  }
  // Where two sets are only compared, this host has no part in what they say.
  if (!record.comparison || !record.results.empty()) DrawSides(record, canvas);
  // Single runs of sets that are compared are for whoever asks for all.
  if (!record.comparison || options.verbose) DrawResults(record, canvas);
  DrawPreflight(record.preflight, canvas);
  DrawChecks(record.checks, canvas);
  DrawGates(record.gates, canvas);
  if (record.comparison) DrawComparison(*record.comparison, canvas);
  DrawEnd(record, canvas);
  return canvas.Take();
}

}  // namespace verbscope
