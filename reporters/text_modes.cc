// The tables, plots and sentences of event-vs-poll.
#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "reporters/text_parts.h"
#include "reporters/text_plot.h"

namespace verbscope {
namespace {

constexpr size_t kModeColumns = 18;
constexpr size_t kTimeColumns = 9;

std::string Time(const std::optional<int64_t>& ns) {
  return PadLeft(TimeColumn(Real(ns)), kTimeColumns);
}

// In so many columns, whatever the value.
std::string Number(const std::optional<double>& value, int decimals, size_t columns) {
  if (!value) return PadLeft("-", columns);
  const std::string text = fmt::format("{:.{}f}", *value, decimals);
  return PadLeft(text.size() < columns ? text : fmt::format("{:.0e}", *value), columns);
}

std::string PerSecond(const std::optional<double>& rate) {
  constexpr double kMost = 1e18;
  const bool counts = rate && *rate >= 0 && *rate < kMost;
  return PadLeft(counts ? ShortCountText(static_cast<uint64_t>(*rate + 0.5)) : "-", 11);
}

std::string SignedTime(double ns) {
  return fmt::format("{}{}", ns < 0 ? '-' : '+', TimeText(ns < 0 ? -ns : ns));
}

std::string IntervalText(const Difference& difference,
                         const std::function<std::string(double)>& text) {
  if (!difference.low || !difference.high) return "";
  return fmt::format(" [{}, {}]", text(*difference.low), text(*difference.high));
}

// "saves 95 % of the CPU time [94 %, 96 %]", or "takes 20 % more CPU time [15 %, 25 %]".
std::string CpuText(Difference saved, bool at_a_rate) {
  const auto percent = [](double value) { return fmt::format("{:.0f} %", value); };
  const std::string_view of = at_a_rate ? "CPU time" : "CPU time per message";
  if (saved.value >= 0) {
    return fmt::format("saves {} of the {}{}", percent(saved.value), of,
                       IntervalText(saved, percent));
  }
  Difference more{.value = -saved.value};
  if (saved.high) more.low = -*saved.high;
  if (saved.low) more.high = -*saved.low;
  return fmt::format("takes {} more {}{}", percent(more.value), of, IntervalText(more, percent));
}

std::string AgainstBusy(const ModeRow& row) {
  std::string text;
  if (row.p50_more_ns) {
    text = fmt::format("p50 {}{}", SignedTime(row.p50_more_ns->value),
                       IntervalText(*row.p50_more_ns, SignedTime));
  }
  if (row.cpu_saved_percent) {
    if (!text.empty()) text += ", ";
    text += CpuText(*row.cpu_saved_percent, row.offered_per_s.has_value());
  }
  return text.empty() ? "" : "against busy: " + text;
}

void DrawRow(const ModeRow& row, Canvas& canvas) {
  std::optional<double> percent = row.utilization;
  if (percent) *percent *= 100;
  canvas.Line("  " + Cell(canvas.Safe(row.mode), kModeColumns - 2) + Time(row.p50_ns) +
              Time(row.p99_ns) + Time(row.p99_9_ns) + Time(row.max_ns) +
              PerSecond(row.achieved_per_s) + Number(percent, 1, 7) +
              Number(row.us_per_message, 2, 8));
  std::string text = AgainstBusy(row);
  if (row.completions_per_event) {
    text += fmt::format("{}{:.2f} completions per event", text.empty() ? "" : "; ",
                        *row.completions_per_event);
  }
  if (row.lost_wakeups > 0) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", Plural(row.lost_wakeups, "lost wake-up"));
  }
  if (!text.empty()) canvas.Wrapped(6, text, row.lost_wakeups > 0 ? Ink::kRed : Ink::kDim);
}

void DrawRows(const Record& record, Canvas& canvas) {
  const ModeSummary& modes = *record.modes;
  const std::string size =
      record.plan
          ? fmt::format(": messages of {}", Plural(record.plan->sizes_bytes.front(), "byte"))
          : "";
  canvas.Blank();
  canvas.Wrapped(0, fmt::format("ways of waiting, by load{}", size), Ink::kBold);
  canvas.Wrapped(2,
                 "times and messages/s are the requester's, all runs together: half a round trip "
                 "in the closed loop, from the intended send time to the answer at offered rates; "
                 "CPU is the responder's measuring thread; differences carry a 95 % interval over "
                 "the runs; '-': too few samples, or does not apply");
  std::string load;
  for (const ModeRow& row : modes.rows) {
    if (row.load != load) {
      load = row.load;
      canvas.Blank();
      canvas.Wrapped(0, canvas.Safe(load), Ink::kBold);
      std::string titles(kModeColumns, ' ');
      for (const char* title : {"p50", "p99", "p99.9", "max"}) {
        titles += PadLeft(title, kTimeColumns);
      }
      titles += PadLeft("per second", 11) + PadLeft("CPU %", 7) + PadLeft("us/msg", 8);
      canvas.Line(canvas.In(Ink::kDim, titles));
    }
    DrawRow(row, canvas);
  }
}

std::vector<PlotSeries> SeriesOf(
    const ModeSummary& modes, const std::function<std::optional<double>(const ModeRow&)>& value) {
  std::vector<PlotSeries> series;
  for (const ModeRow& row : modes.rows) {
    const std::optional<double> y = value(row);
    if (!row.offered_per_s || *row.offered_per_s <= 0 || !y) continue;
    auto found = std::ranges::find(series, row.mode, &PlotSeries::name);
    if (found == series.end()) found = series.insert(series.end(), {row.mode, {}});
    found->points.emplace_back(*row.offered_per_s, *y);
  }
  return series;
}

void DrawPlots(const ModeSummary& modes, Canvas& canvas) {
  const auto rate_text = [](double rate) {
    return ShortCountText(static_cast<uint64_t>(std::clamp(rate, 0.0, 1e18))) + "/s";
  };
  Plot latency;
  latency.title = "p50 against offered rate";
  latency.x_label = "messages per second offered";
  latency.log_y = true;
  latency.x_text = rate_text;
  latency.y_text = [](double ns) { return TimeText(ns); };
  latency.series = SeriesOf(modes, [](const ModeRow& row) { return Real(row.p50_ns); });
  DrawPlot(latency, canvas);
  Plot cpu = latency;
  cpu.title = "CPU of the responder against offered rate";
  cpu.log_y = false;
  cpu.y_text = [](double percent) { return fmt::format("{:.0f} %", percent); };
  cpu.series = SeriesOf(modes, [](const ModeRow& row) -> std::optional<double> {
    if (!row.utilization) return std::nullopt;
    return *row.utilization * 100;
  });
  DrawPlot(cpu, canvas);
}

std::string FloorText(const JitterFloor& floor) {
  return fmt::format(
      "longest gap {}, {:.1f} gaps/s over 10 us, {:.1f} over 100 us, {:.2f} % of the time lost",
      TimeText(static_cast<double>(floor.max_gap_ns)), floor.gaps_over_10us_per_s,
      floor.gaps_over_100us_per_s, floor.lost_share * 100);
}

void DrawFloor(const SideRecord& side, Canvas& canvas) {
  if (!side.jitter_floor) return;
  canvas.Wrapped(2, fmt::format("{}: {}", canvas.Safe(side.role), FloorText(*side.jitter_floor)));
}

void DrawFloors(const Record& record, Canvas& canvas) {
  if (!record.local.jitter_floor && !(record.remote && record.remote->jitter_floor)) return;
  canvas.Blank();
  canvas.Wrapped(0, "jitter floor: a thread that only read the clock, before the runs", Ink::kBold);
  DrawFloor(record.local, canvas);
  if (record.remote) DrawFloor(*record.remote, canvas);
  canvas.Wrapped(2, "a tail that is not longer than these gaps is the host's, not the mode's",
                 Ink::kDim);
}

void DrawTexts(std::string_view title, const std::vector<std::string>& texts, Canvas& canvas) {
  if (texts.empty()) return;
  canvas.Blank();
  canvas.Wrapped(0, title, Ink::kBold);
  for (const std::string& text : texts) canvas.Hanging("  - ", 4, canvas.Safe(text));
}

}  // namespace

void DrawModes(const Record& record, Canvas& canvas) {
  const ModeSummary& modes = *record.modes;
  DrawFloors(record, canvas);
  if (!modes.rows.empty()) {
    DrawRows(record, canvas);
    DrawPlots(modes, canvas);
  }
  DrawTexts("left out", modes.unsuited, canvas);
  DrawTexts("where they cross", modes.sentences, canvas);
  DrawTexts("which to use", modes.advice, canvas);
}

}  // namespace verbscope
