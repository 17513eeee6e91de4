// What cq-scale and cq-overrun measured, as tables, with a sentence that compares.
#include <fmt/core.h>

#include <algorithm>

#include "reporters/text_parts.h"

namespace verbscope {
namespace {

constexpr size_t kCountColumns = 11;
constexpr size_t kNameColumns = 24;

std::string Number(const std::optional<double>& value, int decimals, size_t columns) {
  return PadLeft(value ? fmt::format("{:.{}f}", *value, decimals) : "-", columns);
}

std::optional<double> RateOf(const Result& result) {
  return result.metrics.bandwidth ? result.metrics.bandwidth->msg_per_s : std::nullopt;
}

std::string ScaleLine(const Result& result) {
  const ScaleMetrics& scale = *result.metrics.scale;
  return PadLeft(CountText(result.point.cqs.value_or(1)), 5) +
         PadLeft(CountText(scale.threads), 9) + PadLeft(CountText(scale.cqe), kCountColumns) +
         (result.complete ? " " : "*") + Number(RateOf(result), 0, 13) +
         Number(scale.speedup, 2, kCountColumns) + Number(scale.cpu_us_per_message, 3, 16) +
         Number(scale.completions_per_poll, 1, kCountColumns);
}

// The row of so many CQs and threads without a depth of its own.
const Result* FindRow(const std::vector<const Result*>& rows, uint32_t cqs, uint32_t threads) {
  const auto found = std::ranges::find_if(rows, [&](const Result* row) {
    return row->point.cqs == cqs && row->metrics.scale->threads == threads &&
           !row->point.cq_depth && row->run == 0;
  });
  return found == rows.end() ? nullptr : *found;
}

std::string TimesText(const std::optional<double>& times) {
  return times ? fmt::format("{:.2f} times", *times) : std::string("an unknown part of");
}

// Two measurements of the same: what the others differ by less says nothing.
void DrawNoiseSentence(const std::vector<const Result*>& rows, Canvas& canvas) {
  for (const Result* row : rows) {
    if (row->run == 0 || !row->metrics.scale->speedup) continue;
    canvas.Wrapped(2,
                   fmt::format("1 thread on 1 CQ once more, at the end: {:.2f} times; a ratio no "
                               "further from 1 than that says nothing",
                               *row->metrics.scale->speedup));
  }
}

// What more CQs gave, and what the same threads made of one.
void DrawScaleSentences(const std::vector<const Result*>& rows, Canvas& canvas) {
  const Result* base = FindRow(rows, 1, 1);
  for (const Result* row : rows) {
    const uint32_t cqs = row->point.cqs.value_or(1);
    if (cqs == 1 || base == nullptr) continue;
    const ScaleMetrics& scale = *row->metrics.scale;
    std::string text =
        fmt::format("{} on {}: {} the message rate of 1 thread on 1 CQ",
                    Plural(scale.threads, "thread"), Plural(cqs, "CQ"), TimesText(scale.speedup));
    const Result* shared = FindRow(rows, 1, scale.threads);
    if (shared != nullptr) {
      const ScaleMetrics& at_one = *shared->metrics.scale;
      text += fmt::format("; on 1 CQ the same threads {}", TimesText(at_one.speedup));
      if (at_one.cpu_us_per_message && base->metrics.scale->cpu_us_per_message) {
        text += fmt::format(", {:.3f} us of CPU per message against {:.3f} us of one thread",
                            *at_one.cpu_us_per_message, *base->metrics.scale->cpu_us_per_message);
      }
    }
    canvas.Wrapped(2, text);
    if (scale.threads > scale.cores) {
      canvas.Wrapped(2,
                     fmt::format("({} on {}: bounded by the CPUs, not by the CQs)",
                                 Plural(scale.threads, "thread"), Plural(scale.cores, "CPU")),
                     Ink::kYellow);
    }
  }
}

// Room is no speed: the rates of one CQ by its depth.
void DrawDepthSentence(const std::vector<const Result*>& rows, Canvas& canvas) {
  std::optional<double> least;
  std::optional<double> most;
  for (const Result* row : rows) {
    const std::optional<double>& speedup = row->metrics.scale->speedup;
    if (!row->point.cq_depth || !speedup) continue;
    least = std::min(least.value_or(*speedup), *speedup);
    most = std::max(most.value_or(*speedup), *speedup);
  }
  if (!least) return;
  canvas.Wrapped(
      2, fmt::format("by depth of one CQ: {:.2f} to {:.2f} times; depth is room, not speed", *least,
                     *most));
}

std::string EventText(const OverrunMetrics& overrun, const Canvas& canvas) {
  return overrun.event.empty()
             ? "none"
             : Cell(canvas.Safe(overrun.event.substr(0, overrun.event.find(' '))), 10);
}

// In so many columns, seven or more, with room before it.
std::string Count(uint64_t count, size_t columns) {
  constexpr uint64_t kMostDigits = 99'999;
  if (count <= kMostDigits) return PadLeft(CountText(count), columns);
  return PadLeft(fmt::format("{:.0e}", static_cast<double>(count)), columns);
}

std::string OverrunLine(const Result& result, const Canvas& canvas) {
  const OverrunMetrics& overrun = *result.metrics.overrun;
  std::string name = canvas.Safe(result.point.variant.value_or(""));
  if (result.side == "responder") name += " *";
  return "  " + Cell(name, kNameColumns) + Count(overrun.cqe, 7) + Count(overrun.outstanding, 8) +
         Count(overrun.delivered, 10) + Count(overrun.flushed, 8) + Count(overrun.lost, 7) + "  " +
         Cell(canvas.Safe(overrun.qp_state), 6) + EventText(overrun, canvas);
}

}  // namespace

void DrawScale(const std::vector<Result>& results, Canvas& canvas) {
  std::vector<const Result*> rows;
  for (const Result& result : results) {
    if (result.metrics.scale) rows.push_back(&result);
  }
  if (rows.empty()) return;
  const Point& point = rows.front()->point;
  canvas.Blank();
  canvas.Wrapped(0,
                 fmt::format("{} {}, {}, {} in flight of each, by completion queues and threads",
                             canvas.Safe(point.op), Plural(point.size_bytes, "byte"),
                             Plural(point.qps, "QP"), point.tx_depth.value_or(1)),
                 Ink::kBold);
  canvas.Wrapped(2,
                 "speed-up: message rate over that of one thread at one CQ; CPU us/msg: of all "
                 "threads; per poll: completions of a poll that found any");
  canvas.Blank();
  canvas.Line(canvas.In(
      Ink::kDim, PadLeft("CQs", 5) + PadLeft("threads", 9) + PadLeft("entries", kCountColumns) +
                     " " + PadLeft("messages/s", 13) + PadLeft("speed-up", kCountColumns) +
                     PadLeft("CPU us/msg", 16) + PadLeft("per poll", kCountColumns)));
  for (const Result* row : rows) canvas.Line(ScaleLine(*row));
  canvas.Blank();
  DrawScaleSentences(rows, canvas);
  DrawDepthSentence(rows, canvas);
  DrawNoiseSentence(rows, canvas);
  if (std::ranges::any_of(rows, [](const Result* row) { return !row->complete; })) {
    canvas.Wrapped(2, "* incomplete: a completion was wrong or did not come", Ink::kRed);
  }
}

void DrawOverrun(const std::vector<Result>& results, Canvas& canvas) {
  std::vector<const Result*> rows;
  for (const Result& result : results) {
    if (result.metrics.overrun) rows.push_back(&result);
  }
  if (rows.empty()) return;
  canvas.Blank();
  canvas.Wrapped(0, "completion queues and the completions that were to come", Ink::kBold);
  canvas.Wrapped(
      2,
      "due: requests that complete into this CQ; delivered: polled with SUCCESS; flushed: "
      "polled with an error; lost: never came; * at the responder");
  canvas.Blank();
  canvas.Line(canvas.In(Ink::kDim, "  " + PadRight("", kNameColumns) + PadLeft("CQE", 7) +
                                       PadLeft("due", 8) + PadLeft("delivered", 10) +
                                       PadLeft("flushed", 8) + PadLeft("lost", 7) + "  " +
                                       PadRight("QP", 6) + "event"));
  for (const Result* row : rows) canvas.Line(OverrunLine(*row, canvas));
}

}  // namespace verbscope
