#include "core/modes/mode_summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "core/histogram/histogram.h"
#include "core/modes/advice.h"
#include "core/record/percentile.h"
#include "core/statistics/latency_summary.h"

namespace verbscope {
namespace {

// The results of one load and way of waiting.
struct Cell {
  std::vector<const Result*> requester;
  std::vector<const Result*> responder;
};

bool IsOf(const Result& result, const Load& load) {
  const Point& point = result.point;
  switch (load.kind) {
    case LoadKind::kClosed:
      return !point.rate_per_s && !result.metrics.bandwidth && point.tx_depth == 1u;
    case LoadKind::kStream:
      return !point.rate_per_s && point.tx_depth != 1u;
    case LoadKind::kOpen:
      if (load.busy_share_percent > 0) return point.busy_share_percent == load.busy_share_percent;
      return !point.busy_share_percent && point.rate_per_s == load.rate_per_s;
  }
  return false;
}

bool IsOf(const Result& result, const Mode& mode) {
  const Point& point = result.point;
  const bool hybrid = mode.wait.kind == WaitKind::kHybrid;
  const std::string kind = hybrid ? "hybrid" : ToText(mode.wait);
  const std::string moderation = mode.moderation ? ToText(*mode.moderation) : "";
  return point.wait == kind && point.spin_ns.value_or(0) == (hybrid ? mode.wait.spin_ns : 0) &&
         point.moderation.value_or("") == moderation;
}

Cell CellOf(const std::vector<Result>& results, const Load& load, const Mode& mode) {
  Cell cell;
  for (const Result& result : results) {
    if (!result.complete || !IsOf(result, load) || !IsOf(result, mode)) continue;
    (result.side == "requester" ? cell.requester : cell.responder).push_back(&result);
  }
  return cell;
}

template <class Get>
std::map<uint32_t, double> ByRun(const std::vector<const Result*>& results, Get get) {
  std::map<uint32_t, double> values;
  for (const Result* result : results) {
    if (const std::optional<double> value = get(result->metrics)) values[result->run] = *value;
  }
  return values;
}

std::optional<double> Median(const Metrics& metrics) {
  const auto ns = metrics.latency ? AtPercent(*metrics.latency, "50") : std::nullopt;
  return ns ? std::optional<double>(static_cast<double>(*ns)) : std::nullopt;
}

std::optional<double> Utilization(const Metrics& metrics) {
  return metrics.cpu ? metrics.cpu->utilization : std::nullopt;
}

std::optional<double> UsPerMessage(const Metrics& metrics) {
  return metrics.cpu ? metrics.cpu->us_per_message : std::nullopt;
}

std::optional<double> PerEvent(const Metrics& metrics) {
  return metrics.cpu ? metrics.cpu->completions_per_event : std::nullopt;
}

std::optional<double> Achieved(const Metrics& metrics) {
  if (metrics.bandwidth) return metrics.bandwidth->msg_per_s;
  return metrics.load ? metrics.load->achieved_per_s : std::nullopt;
}

std::optional<double> Offered(const Metrics& metrics) {
  return metrics.load ? metrics.load->offered_per_s : std::nullopt;
}

std::optional<double> Mean(const std::map<uint32_t, double>& values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const auto& [run, value] : values) sum += value;
  return sum / static_cast<double>(values.size());
}

void AddLatency(const Cell& cell, ModeRow& row) {
  Histogram histogram;
  std::optional<int64_t> max_ns;
  for (const Result* result : cell.requester) {
    if (!result->metrics.latency) continue;
    const LatencyMetrics& latency = *result->metrics.latency;
    for (const HistogramBucket& bucket : latency.buckets) {
      const int64_t from_ns = std::clamp<int64_t>(bucket.from_ns, 0, Histogram::kRangeNs);
      histogram.AddToBucket(Histogram::IndexOf(from_ns), bucket.count);
    }
    if (latency.max_ns) max_ns = std::max(max_ns.value_or(0), *latency.max_ns);
  }
  row.samples = histogram.count();
  row.max_ns = max_ns;
  // A bucket's upper edge may lie above the exact maximum, which is known.
  const auto value = [&](Percentile percentile) {
    std::optional<int64_t> ns = EstimatePercentile(histogram, percentile).value_ns;
    if (ns && max_ns) ns = std::min(*ns, *max_ns);
    return ns;
  };
  row.p50_ns = value(kP50);
  row.p99_ns = value(kP99);
  row.p99_9_ns = value(kP99_9);
}

// Of all runs together: a slow run with few messages must not count like one with many.
std::optional<double> UsPerMessageOfAll(const std::vector<const Result*>& results) {
  double cpu_us = 0;
  double messages = 0;
  for (const Result* result : results) {
    const std::optional<CpuMetrics>& cpu = result->metrics.cpu;
    if (!cpu || cpu->us_per_message.value_or(0) <= 0) continue;
    cpu_us += cpu->cpu_s * 1e6;
    messages += cpu->cpu_s * 1e6 / *cpu->us_per_message;
  }
  return messages > 0 ? std::optional<double>(cpu_us / messages) : std::nullopt;
}

uint64_t LostOf(const std::vector<const Result*>& results) {
  uint64_t lost = 0;
  for (const Result* result : results) {
    if (result->metrics.cpu) lost += result->metrics.cpu->lost_wakeups;
  }
  return lost;
}

ModeRow RowOf(const Load& load, const Mode& mode, const Cell& cell) {
  ModeRow row;
  row.mode = ToText(mode);
  row.offered_per_s = Mean(ByRun(cell.requester, Offered));
  row.load = LoadText(load);
  if (load.busy_share_percent > 0 && row.offered_per_s) {
    row.load += ": " + RateText(*row.offered_per_s) + "/s";
  }
  row.achieved_per_s = Mean(ByRun(cell.requester, Achieved));
  AddLatency(cell, row);
  row.utilization = Mean(ByRun(cell.responder, Utilization));
  row.us_per_message = UsPerMessageOfAll(cell.responder);
  row.completions_per_event = Mean(ByRun(cell.responder, PerEvent));
  row.lost_wakeups = LostOf(cell.requester) + LostOf(cell.responder);
  return row;
}

// Of runs that both have: combine(theirs, reference).
template <class Combine>
std::optional<Difference> Compare(const std::map<uint32_t, double>& theirs,
                                  const std::map<uint32_t, double>& reference, Combine combine) {
  std::vector<double> values;
  for (const auto& [run, value] : theirs) {
    const auto other = reference.find(run);
    if (other == reference.end()) continue;
    const double combined = combine(value, other->second);
    if (std::isfinite(combined)) values.push_back(combined);
  }
  if (values.empty()) return std::nullopt;
  return MeanOf(values);
}

void AddDifferences(const Load& load, const Cell& cell, const Cell& reference, ModeRow& row) {
  row.p50_more_ns = Compare(ByRun(cell.requester, Median), ByRun(reference.requester, Median),
                            [](double theirs, double busy) { return theirs - busy; });
  // Where nothing limits the messages but the way of waiting, more pass in one way than in another,
  // and the time per message counts. At an offered rate it is the time.
  const auto cost = load.kind == LoadKind::kOpen ? Utilization : UsPerMessage;
  row.cpu_saved_percent =
      Compare(ByRun(cell.responder, cost), ByRun(reference.responder, cost),
              [](double theirs, double busy) { return (1 - theirs / busy) * 100; });
}

// The 97.5 % quantile of Student's t with so many degrees of freedom, from 1.
double StudentT(size_t freedom) {
  constexpr std::array kTable = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                                 2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                                 2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                                 2.060,  2.056, 2.052, 2.048, 2.045, 2.042};
  // Never too narrow: between two rows of the table the wider one.
  if (freedom <= kTable.size()) return kTable[freedom - 1];
  return freedom < 60 ? kTable.back() : freedom < 120 ? 2.000 : 1.980;
}

}  // namespace

std::string RateText(double per_s) {
  if (per_s < 10) return fmt::format("{:g}", per_s);
  std::string digits = fmt::format("{:.0f}", per_s);
  for (size_t place = digits.size(); place > 3;) digits.insert(place -= 3, 1, ',');
  return digits;
}

std::string LoadText(const Load& load) {
  switch (load.kind) {
    case LoadKind::kClosed:
      return "closed loop";
    case LoadKind::kStream:
      return "streaming";
    case LoadKind::kOpen:
      break;
  }
  return load.busy_share_percent > 0 ? fmt::format("{:g} % of busy", load.busy_share_percent)
                                     : RateText(load.rate_per_s) + "/s";
}

Difference MeanOf(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  Difference difference;
  difference.value = sum / count;
  if (values.size() < 2) return difference;
  double squares = 0;
  for (const double value : values) {
    squares += (value - difference.value) * (value - difference.value);
  }
  const double half = StudentT(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
  difference.low = difference.value - half;
  difference.high = difference.value + half;
  return difference;
}

ModeSummary SummarizeModes(const Plan& plan, const std::vector<Result>& results) {
  ModeSummary summary;
  const std::vector<Mode> modes = ModesOf(plan);
  for (const Load& load : LoadsOf(plan)) {
    std::vector<Cell> cells;
    for (const Mode& mode : modes) cells.push_back(CellOf(results, load, mode));
    const auto busy = std::ranges::find_if(modes, IsReference);
    for (size_t i = 0; i < modes.size(); ++i) {
      if (cells[i].requester.empty()) continue;
      ModeRow row = RowOf(load, modes[i], cells[i]);
      if (busy != modes.end() && !IsReference(modes[i])) {
        AddDifferences(load, cells[i], cells[static_cast<size_t>(busy - modes.begin())], row);
      }
      summary.rows.push_back(std::move(row));
    }
  }
  summary.sentences = CrossoverSentences(summary.rows);
  summary.advice = Advice(summary.rows, plan.p99_limit_ns);
  if (plan.repeat == 1 && !summary.sentences.empty()) {
    summary.sentences.emplace_back(
        "each of these rests on one run, so that nothing says how far it can be trusted: use "
        "--repeat 3 or more");
  }
  return summary;
}

CheckRow LostWakeUpsRow(const std::vector<Result>& results) {
  uint64_t lost = 0;
  uint64_t events = 0;
  std::string first;
  for (const Result& result : results) {
    if (!result.metrics.cpu) continue;
    events += result.metrics.cpu->events;
    lost += result.metrics.cpu->lost_wakeups;
    if (result.metrics.cpu->lost_wakeups > 0 && first.empty()) {
      first =
          fmt::format("first by the {} in {} mode{}, run {}", result.side, result.point.wait,
                      result.point.moderation ? " " + *result.point.moderation : "", result.run);
    }
  }
  return {.name = "lost-wakeups",
          .status = lost == 0 ? "pass" : "fail",
          .expected = "no lost wake-up",
          .observed = fmt::format("{} lost of {} events{}{}", lost, events,
                                  first.empty() ? "" : ", ", first),
          .why = lost == 0 ? ""
                           : "a completion lay in an armed CQ for 10 ms and more, and the channel "
                             "told nothing",
          .source = "ibv_req_notify_cq(3), ibv_get_cq_event(3)"};
}

}  // namespace verbscope
