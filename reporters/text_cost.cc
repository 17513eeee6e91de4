// What verb-cost measured: one line per row, then what the rows say together. Histograms are in
// the document only, or in full with --verbose.
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan/size_text.h"
#include "core/record/percentile.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

constexpr size_t kVerbColumns = 14;
constexpr size_t kVariantColumns = 15;
constexpr size_t kCountColumns = 8;
constexpr size_t kTimeColumns = 9;
constexpr size_t kKernelColumns = 7;

// What sets a row apart from others of its verb. A swept message has one size, which the notes
// above the table state.
std::string Variant(const Point& point, const Canvas& canvas) {
  if (point.post_list) return fmt::format("list of {}", *point.post_list);
  if (point.signal_every) return fmt::format("signal 1 in {}", *point.signal_every);
  const std::string variant = canvas.Safe(point.variant.value_or(""));
  if (variant == "huge pages") return BytesText(point.size_bytes) + " huge";
  if (!variant.empty()) return variant;
  if (point.inline_data) {
    return fmt::format("{} B{}", point.size_bytes, *point.inline_data ? " inline" : "");
  }
  return point.size_bytes > 0 ? BytesText(point.size_bytes) : "";
}

std::optional<double> Percentile(const Result& result, std::string_view percent) {
  return result.metrics.latency ? Real(AtPercent(*result.metrics.latency, percent)) : std::nullopt;
}

std::string Time(std::optional<double> ns) { return PadLeft(TimeColumn(ns), kTimeColumns); }

// Most calls make no system call, and some do.
bool AtTimes(const CostMetrics& cost) {
  return cost.syscalls_per_call == 0u && cost.syscalls_at_most.value_or(0) > 0;
}

std::string Kernel(const CostMetrics& cost) {
  if (!cost.enters_kernel) return "?";
  if (AtTimes(cost)) return "at times";
  if (!*cost.enters_kernel) return "no";
  const uint64_t calls = cost.syscalls_per_call.value_or(0);
  return calls > 0 && calls < 100 ? fmt::format("yes {}", calls) : "yes";
}

void DrawRow(const Result& result, Canvas& canvas) {
  const CostMetrics& cost = *result.metrics.cost;
  std::optional<double> max;
  if (result.metrics.latency && result.metrics.latency->max_ns) {
    max = static_cast<double>(*result.metrics.latency->max_ns);
  }
  const std::string count = ShortCountText(cost.calls) + (result.complete ? " " : "*");
  canvas.Line(Cell(canvas.Safe(result.point.op), kVerbColumns) +
              Cell(Variant(result.point, canvas), kVariantColumns) + PadLeft(count, kCountColumns) +
              Time(Percentile(result, "50")) + Time(Percentile(result, "99")) + Time(max) +
              Time(cost.ns_per_request) + PadLeft(Kernel(cost), kKernelColumns));
}

// Rows by what they are of, for the sentences below the table.
class Rows {
 public:
  Rows(const std::vector<const Result*>& rows, const Canvas& canvas)
      : rows_(rows), canvas_(canvas) {}

  // Cost per request; nullopt: not measured.
  std::optional<double> Each(std::string_view op, std::string_view variant) const {
    const auto found = std::ranges::find_if(rows_, [&](const Result* row) {
      return row->point.op == op && Variant(row->point, canvas_) == variant;
    });
    return found == rows_.end() ? std::nullopt : (*found)->metrics.cost->ns_per_request;
  }

  // The verbs whose calls do what `enters` says, with the variants where a verb's are not alike.
  std::string Verbs(std::string_view kernel) const {
    std::vector<std::string> ops;
    for (const Result* row : rows_) {
      const std::string& op = row->point.op;
      if (op != "empty_timing" && std::ranges::find(ops, op) == ops.end()) ops.push_back(op);
    }
    std::vector<std::string> verbs;
    for (const std::string& op : ops) {
      std::string verb = OfOne(op, kernel);
      if (!verb.empty()) verbs.push_back(std::move(verb));
    }
    return fmt::format("{}", fmt::join(verbs, ", "));
  }

 private:
  std::string OfOne(const std::string& op, std::string_view kernel) const {
    std::vector<std::string> variants;
    bool all = true;
    for (const Result* row : rows_) {
      if (row->point.op != op) continue;
      const bool alike = Kernel(*row->metrics.cost).starts_with(kernel);
      if (alike) variants.push_back(Variant(row->point, canvas_));
      all = all && alike;
    }
    if (variants.empty()) return "";
    if (all) return canvas_.Safe(op);
    return fmt::format("{} ({})", canvas_.Safe(op), fmt::join(variants, ", "));
  }

  const std::vector<const Result*>& rows_;
  const Canvas& canvas_;
};

std::string T(const std::optional<double>& ns) { return TimeText(*ns); }

// "64 bytes cost 84 ns inline and 85 ns not; …": the largest payload that goes inline, and the
// next.
void DrawInline(const std::vector<const Result*>& rows, Canvas& canvas) {
  uint64_t limit = 0;
  for (const Result* row : rows) {
    if (row->point.op == "post_send" && row->point.inline_data.value_or(false)) {
      limit = std::max(limit, row->point.size_bytes);
    }
  }
  if (limit == 0) return;
  const Rows table(rows, canvas);
  const auto with = table.Each("post_send", "64 B inline");
  const auto without = table.Each("post_send", "64 B");
  std::string text;
  if (with && without) {
    text = fmt::format("64 bytes cost {} inline and {} not", T(with), T(without));
  }
  const auto last = table.Each("post_send", fmt::format("{} B inline", limit));
  const auto beyond = table.Each("post_send", fmt::format("{} B", limit + 1));
  if (last && beyond) {
    text += fmt::format("{}{} bytes, the limit, cost {} inline; {}, which is above it, {}",
                        text.empty() ? "" : "; ", limit, T(last), limit + 1, T(beyond));
  }
  if (!text.empty()) canvas.Labelled("inline", text);
}

void DrawSentences(const std::vector<const Result*>& rows, Canvas& canvas) {
  const Rows table(rows, canvas);
  const auto single = table.Each("post_send", "64 B");
  const auto list = table.Each("post_send", "list of 64");
  if (single && list) {
    canvas.Labelled(
        "list", fmt::format("in a list of 64 a request costs {}, alone {}", T(list), T(single)));
  }
  const auto rarely = table.Each("post_send", "signal 1 in 64");
  const auto poll = table.Each("poll_cq", "1 completion");
  if (single && rarely) {
    canvas.Labelled(
        "signal",
        fmt::format("with one in 64 signalled a post costs {}, with each {}{}", T(rarely),
                    T(single),
                    poll ? fmt::format(" and a poll of {} for its completion", T(poll)) : ""));
  }
  const auto extended = table.Each("ibv_wr", "64 B");
  if (single && extended) {
    std::string text =
        fmt::format("one request costs {}, with ibv_post_send {}", T(extended), T(single));
    const auto batch = table.Each("ibv_wr", "list of 16");
    const auto same = table.Each("post_send", "list of 16");
    if (batch && same) text += fmt::format("; one of 16 {} and {}", T(batch), T(same));
    canvas.Labelled("ibv_wr", text);
  }
  const auto empty = table.Each("poll_cq", "empty");
  const auto full = table.Each("poll_cq", "16 completions");
  if (empty && poll && full) {
    canvas.Labelled("polling", fmt::format("a completion costs {} alone and {} among 16; looking "
                                           "in vain {}",
                                           T(poll), T(full), T(empty)));
  }
  const auto one = table.Each("ack_cq_events", "1 event");
  const auto many = table.Each("ack_cq_events", "16 events");
  if (one && many) {
    canvas.Labelled("ack", fmt::format("an event costs {} alone and {} among 16", T(one), T(many)));
  }
}

void DrawKernel(const std::vector<const Result*>& rows, Canvas& canvas) {
  const Rows table(rows, canvas);
  const std::array<std::pair<std::string_view, std::string>, 4> lines = {{
      {"entered by", table.Verbs("yes")},
      {"at times by", table.Verbs("at times")},
      {"not entered by", table.Verbs("no")},
      {"not known of", table.Verbs("?")},
  }};
  std::string_view label = "kernel";
  for (const auto& [what, verbs] : lines) {
    if (verbs.empty()) continue;
    canvas.Labelled(label, fmt::format("{} {}", what, verbs));
    label = "";
  }
}

void DrawNotes(const std::vector<const Result*>& rows, Canvas& canvas) {
  const std::optional<double> overhead = rows.front()->metrics.cost->overhead_ns;
  canvas.Blank();
  canvas.Wrapped(0, "nanoseconds per call, each call timed alone", Ink::kBold);
  canvas.Wrapped(
      2, fmt::format("two clock reads with nothing between them take {} of each time, which is not "
                     "subtracted; messages of 64 bytes where no size is given; each: median of a "
                     "call over the requests, completions or events in it; kernel: whether the "
                     "calling thread makes system calls, and how many",
                     overhead ? TimeText(*overhead) : "an unknown part"));
  canvas.Blank();
}

}  // namespace

void DrawCost(const std::vector<Result>& results, Canvas& canvas) {
  std::vector<const Result*> rows;
  for (const Result& result : results) {
    if (result.metrics.cost) rows.push_back(&result);
  }
  if (rows.empty()) return;
  DrawNotes(rows, canvas);
  canvas.Line(canvas.In(Ink::kDim,
                        PadRight("verb", kVerbColumns) + PadRight("", kVariantColumns) +
                            PadLeft("calls ", kCountColumns) + PadLeft("p50   ", kTimeColumns) +
                            PadLeft("p99   ", kTimeColumns) + PadLeft("max   ", kTimeColumns) +
                            PadLeft("each   ", kTimeColumns) + PadLeft("kernel", kKernelColumns)));
  for (const Result* row : rows) DrawRow(*row, canvas);
  if (std::ranges::any_of(rows, [](const Result* row) { return !row->complete; })) {
    canvas.Wrapped(0, "*: the run ended within this row");
  }
  canvas.Blank();
  DrawInline(rows, canvas);
  DrawSentences(rows, canvas);
  DrawKernel(rows, canvas);
}

}  // namespace verbscope
