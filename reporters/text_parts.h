// The parts of a text report, each of which draws itself on a canvas. Private to reporters; one
// thread per canvas.
#ifndef VERBSCOPE_REPORTERS_TEXT_PARTS_H_
#define VERBSCOPE_REPORTERS_TEXT_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/record/record.h"
#include "reporters/text_canvas.h"

namespace verbscope {

// Nanoseconds as TimeColumn takes them.
inline std::optional<double> Real(const std::optional<int64_t>& ns) {
  return ns ? std::optional<double>(static_cast<double>(*ns)) : std::nullopt;
}

// text.cc: "PASS", "fail" in its colour, … of a check, a gate.
std::string_view Mark(const std::string& status);
Ink MarkInk(const std::string& status);

// text_sides.cc: the title with the verdict; what ran where; what was not used as asked.
void DrawTitle(const Record& record, Canvas& canvas);
void DrawSides(const Record& record, Canvas& canvas);

// text_result.cc: one result in full: latency table, histogram, bandwidth, load, CPU, counters.
void DrawResult(const Result& result, Canvas& canvas);
// Whether its CPU account belongs into a report: it slept, lost a wake-up, or all was asked for.
bool SaysCpu(const Result& result, const Canvas& canvas);
// Whether it measures, as opposed to the other side's CPU account.
bool Measures(const Result& result);
// Whether it is worth a block of its own: what measures is, the rest where something is wrong.
bool IsWorthABlock(const Result& result, const Canvas& canvas);
// "send 64 bytes, 1 QP, wait busy": what the result is about. Without the size for a table of
// sizes.
std::string PointText(const Result& result, bool with_size, const Canvas& canvas);
// What the bandwidth of the result is of, and over which time.
std::string BandwidthText(const Result& result);
// "half round trip: time from posting a SEND …; ended by: receive completion".
std::string DefinitionText(const LatencyMetrics& latency, const std::string& op);

// text_rnr.cc: the tables of rnr-test, of the results that hold such numbers.
void DrawRnr(const std::vector<Result>& results, Canvas& canvas);

// text_modes.cc: tables, plots and sentences of event-vs-poll. Needs record.modes.
void DrawModes(const Record& record, Canvas& canvas);

// text_cost.cc: the table of verb-cost, of the results that hold such numbers.
void DrawCost(const std::vector<Result>& results, Canvas& canvas);

// text_cq.cc: the tables of cq-scale and cq-overrun; nothing for other results.
void DrawScale(const std::vector<Result>& results, Canvas& canvas);
void DrawOverrun(const std::vector<Result>& results, Canvas& canvas);

// text_gates.cc: a line per assertion, and one per result that it did not pass.
void DrawGates(const std::vector<GateRow>& gates, Canvas& canvas);

// text_preflight.cc: the rows of doctor by what they are about, and what to fix first.
void DrawPreflight(const std::vector<PreflightRow>& rows, Canvas& canvas);

// text_resources.cc: the objects in use on a device, a line each.
void DrawResources(const DeviceResources& resources, Canvas& canvas);

// text_comparison.cc: what differs, the verdict of each metric, where distributions moved.
void DrawComparison(const Comparison& comparison, Canvas& canvas);

// text_table.cc: several results, one line each, in groups that differ by size or run only.
void DrawTable(const std::vector<Result>& results, Canvas& canvas);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_TEXT_PARTS_H_
