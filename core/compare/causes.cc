#include "core/compare/causes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/statistics/rank_sum.h"

namespace verbscope {
namespace {

using CounterOf = std::function<std::optional<double>(const Result&)>;

struct Moved {
  double by = 0;  // how many times as much, or as little; larger is more
  std::string sentence;
};

template <class T>
CounterOf OfCpu(T CpuMetrics::*member) {
  return [member](const Result& result) -> std::optional<double> {
    if (!result.metrics.cpu) return std::nullopt;
    return static_cast<double>((*result.metrics.cpu).*member);
  };
}

std::optional<double> RunDelay(const Result& result) {
  return result.metrics.cpu ? result.metrics.cpu->run_delay_s : std::nullopt;
}

std::optional<double> LateSends(const Result& result) {
  if (!result.metrics.load || !result.metrics.load->late_sends) return std::nullopt;
  return static_cast<double>(*result.metrics.load->late_sends);
}

// Stretches of the time series in which nothing arrived.
std::optional<double> Stalls(const Result& result) {
  if (result.intervals.empty()) return std::nullopt;
  return static_cast<double>(std::ranges::count_if(
      result.intervals, [](const IntervalRow& row) { return row.messages == 0; }));
}

CounterOf OfDevice(const std::string& name) {
  return [name](const Result& result) -> std::optional<double> {
    const auto at = result.metrics.counters.find(name);
    if (at == result.metrics.counters.end()) return std::nullopt;
    return static_cast<double>(at->second);
  };
}

double Messages(const Result& result) {
  const Metrics& metrics = result.metrics;
  if (metrics.latency && metrics.latency->samples > 0) {
    return static_cast<double>(metrics.latency->samples);
  }
  if (metrics.bandwidth && metrics.bandwidth->messages > 0) {
    return static_cast<double>(metrics.bandwidth->messages);
  }
  return 1;
}

struct Counted {
  std::vector<double> per_run;
  std::vector<double> per_message;
};

Counted Count(const std::vector<const Result*>& runs, const CounterOf& counter_of) {
  Counted counted;
  for (const Result* run : runs) {
    const std::optional<double> count = counter_of(*run);
    if (!count) continue;
    counted.per_run.push_back(*count);
    counted.per_message.push_back(*count / Messages(*run));
  }
  return counted;
}

bool Apart(const std::vector<double>& base, const std::vector<double>& fresh) {
  constexpr double kLevel = 0.025;
  const RankSumNull null(base.size(), fresh.size());
  return null.AtLeast(PairsAbove(base, fresh, 0)) <= kLevel ||
         null.AtLeast(PairsAbove(fresh, base, 0)) <= kLevel;
}

std::string NumberText(double number) {
  constexpr double kNoFractions = 100;
  constexpr double kLongest = 1e15;
  const double size = std::abs(number);
  const bool whole = size >= kNoFractions || number == std::floor(number);
  return whole && size < kLongest ? fmt::format("{:.0f}", number) : fmt::format("{:.3g}", number);
}

void AddIfMoved(const std::string& name, const JoinedRuns& runs, const CounterOf& counter_of,
                std::vector<Moved>& moved) {
  constexpr double kTenth = 1.1;
  const Counted base = Count(runs.base, counter_of);
  const Counted fresh = Count(runs.fresh, counter_of);
  if (base.per_run.empty() || fresh.per_run.empty()) return;
  const double from = MedianOf(base.per_run);
  const double to = MedianOf(fresh.per_run);
  const double low = std::min(std::abs(from), std::abs(to));
  const double high = std::max(std::abs(from), std::abs(to));
  if (high < kTenth * low || from == to) return;
  if (!Apart(base.per_run, fresh.per_run) || !Apart(base.per_message, fresh.per_message)) return;
  // What was not there at all is the more telling the more there is now.
  const double by = low > 0 ? high / low : 1e6 + high;
  moved.push_back({by, fmt::format("{} of the {}: {} -> {} per run", name, runs.side,
                                   NumberText(from), NumberText(to))});
}

}  // namespace

std::vector<std::string> CausesOf(std::span<const JoinedRuns* const> sides) {
  std::vector<Moved> moved;
  for (const JoinedRuns* side : sides) {
    std::set<std::string> counters;
    for (const Result* run : side->base) {
      for (const auto& [name, change] : run->metrics.counters) counters.insert(name);
    }
    for (const std::string& name : counters) AddIfMoved(name, *side, OfDevice(name), moved);
    AddIfMoved("involuntary_switches", *side, OfCpu(&CpuMetrics::involuntary_switches), moved);
    AddIfMoved("lost_wakeups", *side, OfCpu(&CpuMetrics::lost_wakeups), moved);
    AddIfMoved("run_delay_s", *side, RunDelay, moved);
    AddIfMoved("late_sends", *side, LateSends, moved);
    AddIfMoved("intervals without a message", *side, Stalls, moved);
  }
  std::ranges::stable_sort(moved, [](const Moved& a, const Moved& b) { return a.by > b.by; });
  std::vector<std::string> sentences;
  for (Moved& cause : moved) {
    if (sentences.size() == kMaxCausesOfAPoint) break;
    sentences.push_back(std::move(cause.sentence));
  }
  return sentences;
}

}  // namespace verbscope
