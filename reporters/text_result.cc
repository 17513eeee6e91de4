// One result in full.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/record/point_text.h"
#include "reporters/text_histogram.h"
#include "reporters/text_parts.h"

namespace verbscope {
namespace {

std::string Verb(const std::string& op) {
  if (op.starts_with("send")) return "a SEND";
  if (op.starts_with("write")) return "a WRITE";
  if (op.starts_with("read")) return "a READ";
  return op.starts_with("atomic") ? "an Atomic" : "a request";
}

std::string EndedBy(const std::string& ended_by) {
  if (ended_by == "recv_completion") return "receive completion";
  if (ended_by == "payload_poll") return "payload seen in memory";
  if (ended_by == "send_completion") return "send completion";
  if (ended_by == "return") return "its return";
  return ended_by;
}

// Samples below which a percentile is not stated (fewer than one beyond it), and below which its
// two-sided 95 % interval is not (q^n > 0.025: even the largest sample may lie below the quantile).
uint64_t NeededForValue(double percent) {
  return static_cast<uint64_t>(std::ceil(100 / (100 - percent) - 1e-6));
}
uint64_t NeededForInterval(double percent) {
  return static_cast<uint64_t>(std::ceil(std::log(0.025) / std::log(percent / 100)));
}

void Row(std::string_view name, std::optional<double> ns, std::string_view note, Canvas& canvas) {
  canvas.Line(fmt::format("  {}  {}  {}", PadRight(name, 7), TimeColumn(ns), note));
}

// One sentence for all that is missing: what it would take.
std::string MissingText(const LatencyMetrics& latency) {
  std::vector<std::string> values;
  std::vector<std::string> intervals;
  for (const PercentileRow& row : latency.percentiles) {
    const double percent = std::strtod(row.percent.c_str(), nullptr);
    if (percent <= 0 || percent >= 100) continue;
    const auto needs = [&row](uint64_t count) {
      return fmt::format("p{} needs {}", row.percent, CountText(count));
    };
    if (!row.value_ns) values.push_back(needs(NeededForValue(percent)));
    if (!row.interval) intervals.push_back(needs(NeededForInterval(percent)));
  }
  if (values.empty() && intervals.empty()) return "";
  std::string text = fmt::format("'-' is too few samples: {}", fmt::join(values, ", "));
  if (!values.empty() && !intervals.empty()) text += "; ";
  if (!intervals.empty()) text += fmt::format("for an interval {}", fmt::join(intervals, ", "));
  return text;
}

void DrawLatency(const LatencyMetrics& latency, const std::string& op, Canvas& canvas) {
  canvas.Wrapped(2, DefinitionText(latency, canvas.Safe(op)));
  canvas.Blank();
  canvas.Line(canvas.In(Ink::kDim, "              value  95 % interval"));
  Row("minimum", Real(latency.min_ns), "", canvas);
  for (const PercentileRow& row : latency.percentiles) {
    std::string interval = "-";
    if (row.interval) {
      interval = fmt::format("[{}, {}]", TimeText(static_cast<double>(row.interval->low_ns)),
                             TimeText(static_cast<double>(row.interval->high_ns)));
    }
    Row("p" + canvas.Safe(row.percent), Real(row.value_ns), canvas.In(Ink::kDim, interval), canvas);
  }
  Row("maximum", Real(latency.max_ns), "", canvas);
  Row("mean", latency.mean_ns, "", canvas);
  Row("stdev", latency.stdev_ns, "", canvas);
  canvas.Line(fmt::format("  samples  {}", PadLeft(CountText(latency.samples), 5)));
  if (const std::string missing = MissingText(latency); !missing.empty()) {
    canvas.Wrapped(2, missing, Ink::kDim);
  }
  canvas.Blank();
  DrawHistogram(latency, canvas);
}

std::string Share(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f} % of one CPU", *share * 100) : "";
}

void DrawCpu(const CpuMetrics& cpu, Canvas& canvas) {
  std::vector<std::string> parts = {fmt::format("{:.3f} s", cpu.cpu_s)};
  if (cpu.utilization) parts.push_back(Share(cpu.utilization));
  if (cpu.us_per_message)
    parts.push_back(fmt::format("{:.3f} us per message", *cpu.us_per_message));
  parts.push_back(fmt::format("{} voluntary and {} involuntary switches",
                              CountText(cpu.voluntary_switches),
                              CountText(cpu.involuntary_switches)));
  canvas.Labelled("cpu", fmt::format("{}", fmt::join(parts, ", ")));
  if (cpu.events == 0 && cpu.lost_wakeups == 0) return;
  parts = {Plural(cpu.events, "event")};
  if (cpu.completions_per_event) {
    parts.push_back(fmt::format("{:.2f} completions per event", *cpu.completions_per_event));
  }
  parts.push_back(Plural(cpu.empty_wakeups, "empty wake-up"));
  parts.push_back(Plural(cpu.lost_wakeups, "lost wake-up"));
  canvas.Labelled("events", fmt::format("{}", fmt::join(parts, ", ")),
                  cpu.lost_wakeups > 0 ? Ink::kRed : Ink::kPlain);
}

// The slowest and the fastest full interval: an average hides both.
void DrawRates(const std::vector<IntervalRow>& rows, Canvas& canvas) {
  if (rows.size() < 3) return;
  std::optional<double> least;
  std::optional<double> most;
  for (auto row = rows.begin(); row != rows.end() - 1; ++row) {  // the last one is not full
    const double seconds = row->to_s - row->from_s;
    if (seconds <= 0) continue;
    const double rate = row->gbit_per_s.value_or(static_cast<double>(row->messages) / seconds);
    least = std::min(least.value_or(rate), rate);
    most = std::max(most.value_or(rate), rate);
  }
  if (!least) return;
  const bool bits = rows.front().gbit_per_s.has_value();
  canvas.Labelled("in time",
                  fmt::format("from {:.{}f} to {:.{}f} {} over {} intervals of {:.0f} ms", *least,
                              bits ? 3 : 0, *most, bits ? 3 : 0, bits ? "Gb/s" : "messages/s",
                              rows.size() - 1, (rows.front().to_s - rows.front().from_s) * 1e3));
}

void DrawBandwidth(const Result& result, Canvas& canvas) {
  const BandwidthMetrics& bandwidth = *result.metrics.bandwidth;
  canvas.Wrapped(2, BandwidthText(result));
  canvas.Blank();
  std::vector<std::string> rates;
  if (bandwidth.gbit_per_s) rates.push_back(fmt::format("{:.3f} Gb/s", *bandwidth.gbit_per_s));
  if (bandwidth.seconds > 0 && bandwidth.bytes > 0) {
    rates.push_back(fmt::format(
        "{:.1f} MiB/s", static_cast<double>(bandwidth.bytes) / bandwidth.seconds / (1 << 20)));
  }
  if (bandwidth.msg_per_s) {
    rates.push_back(fmt::format("{} messages/s",
                                CountText(static_cast<uint64_t>(
                                    std::llround(std::clamp(*bandwidth.msg_per_s, 0.0, 1e18))))));
  }
  canvas.Labelled("rate", fmt::format("{}", fmt::join(rates, ", ")), Ink::kBold);
  canvas.Labelled("moved",
                  fmt::format("{} bytes in {} messages in {:.3f} s", CountText(bandwidth.bytes),
                              CountText(bandwidth.messages), bandwidth.seconds));
  DrawRates(result.intervals, canvas);
}

void DrawLoad(const LoadMetrics& load, Canvas& canvas) {
  const auto rate = [](const std::optional<double>& per_s) {
    if (!per_s) return std::string("not known");
    if (*per_s < 100 || *per_s > 1e15) return fmt::format("{:.1f}/s", *per_s);
    return CountText(static_cast<uint64_t>(std::llround(*per_s))) + "/s";
  };
  std::string text = load.offered_per_s ? "offered " + rate(load.offered_per_s) : "closed loop";
  text += ", achieved " + rate(load.achieved_per_s);
  if (load.late_sends) text += fmt::format(", {} sent late", CountText(*load.late_sends));
  canvas.Labelled("load", text);
}

void DrawIntervals(const std::vector<IntervalRow>& rows, Canvas& canvas) {
  std::optional<int64_t> lowest;
  std::optional<int64_t> highest;
  size_t count = 0;
  for (const IntervalRow& row : rows) {
    if (!row.p50_ns) continue;
    lowest = std::min(lowest.value_or(*row.p50_ns), *row.p50_ns);
    highest = std::max(highest.value_or(*row.p50_ns), *row.p50_ns);
    ++count;
  }
  if (count < 2) return;
  const double length_ms = (rows.front().to_s - rows.front().from_s) * 1e3;
  canvas.Labelled("in time",
                  fmt::format("p50 from {} to {} over {} intervals of {:.0f} ms",
                              TimeText(static_cast<double>(*lowest)),
                              TimeText(static_cast<double>(*highest)), count, length_ms));
}

void DrawCounters(const Metrics& metrics, Canvas& canvas) {
  // Those that matter stand at the end of the report with their meaning.
  if (!canvas.options().verbose) return;
  std::vector<std::string> changed;
  for (const auto& [name, delta] : metrics.counters) {
    changed.push_back(fmt::format("{} {:+}", canvas.Safe(name), delta));
  }
  if (!changed.empty()) canvas.Labelled("counters", fmt::format("{}", fmt::join(changed, ", ")));
}

}  // namespace

bool SaysCpu(const Result& result, const Canvas& canvas) {
  if (!result.metrics.cpu) return false;
  const std::string& wait = result.point.wait;
  return canvas.options().verbose || wait == "event" || wait == "solicited" ||
         wait.starts_with("hybrid") || result.metrics.cpu->lost_wakeups > 0;
}

bool Measures(const Result& result) {
  return result.metrics.latency.has_value() || result.metrics.bandwidth.has_value();
}

bool IsWorthABlock(const Result& result, const Canvas& canvas) {
  return Measures(result) || canvas.options().verbose || !result.complete ||
         (result.metrics.cpu && result.metrics.cpu->lost_wakeups > 0);
}

std::string DefinitionText(const LatencyMetrics& latency, const std::string& op) {
  const std::string verb = Verb(op);
  std::string text = latency.definition;
  if (latency.definition == "half_round_trip") {
    text = fmt::format(
        "half round trip: time from posting {} to the arrival of its answer, "
        "divided by two; not a one-way latency",
        verb);
  } else if (latency.definition == "round_trip") {
    text =
        fmt::format("round trip: time from posting {} to its completion, one full operation", verb);
  } else if (latency.definition == "response_time") {
    text = fmt::format(
        "response time: time from when {} was due to its {}, waiting to be sent included", verb,
        latency.ended_by == "recv_completion" ? "answer" : "completion");
  } else if (latency.definition == "call") {
    text = "call: time spent inside one call";
  } else if (latency.definition == "after_receive") {
    text =
        "after the receive: time from posting a receive that the sender was waiting for to its "
        "completion";
  }
  return text + "; ended by: " + EndedBy(latency.ended_by);
}

std::string BandwidthText(const Result& result) {
  const bool sent = result.side == "requester" || result.point.bidirectional.value_or(false);
  const std::string what =
      sent ? "what this side's requests moved, from before the first post to the last completion"
           : "what was received, from when this side was ready to its last receive completion";
  return "throughput: " + what + "; Gb/s are 10^9 bits of payload";
}

std::string PointText(const Result& result, bool with_size, const Canvas& canvas) {
  std::string text =
      canvas.Safe(PointText(result.point, with_size ? WithSize::kYes : WithSize::kNo));
  if (result.set) text += ", set " + canvas.Safe(*result.set);
  if (result.side != "requester") text += ", seen by the " + canvas.Safe(result.side);
  return text;
}

void DrawResult(const Result& result, Canvas& canvas) {
  canvas.Blank();
  std::string heading = PointText(result, /*with_size=*/true, canvas);
  if (result.run > 0) heading += fmt::format(", run {}", result.run);
  canvas.Wrapped(0, heading, Ink::kBold);
  if (!result.complete) {
    canvas.Wrapped(2, "INCOMPLETE: the run broke, these are the samples until then", Ink::kRed);
  }
  const Metrics& metrics = result.metrics;
  if (metrics.latency) DrawLatency(*metrics.latency, result.point.op, canvas);
  if (metrics.latency) canvas.Blank();
  if (metrics.bandwidth) DrawBandwidth(result, canvas);
  if (metrics.load) DrawLoad(*metrics.load, canvas);
  DrawIntervals(result.intervals, canvas);
  if (SaysCpu(result, canvas)) DrawCpu(*metrics.cpu, canvas);
  DrawCounters(metrics, canvas);
  if (metrics.warmup && canvas.options().verbose) {
    canvas.Labelled("warm-up", fmt::format("{} kept apart, maximum {}",
                                           Plural(metrics.warmup->samples, "sample"),
                                           TimeText(Real(metrics.warmup->max_ns).value_or(0))));
  }
}

}  // namespace verbscope
