#include "core/gates/metric.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <utility>

namespace verbscope {
namespace {

constexpr std::pair<std::string_view, MetricKind> kWords[] = {
    {"min", MetricKind::kMin},      {"max", MetricKind::kMax},
    {"mean", MetricKind::kMean},    {"stdev", MetricKind::kStdev},
    {"bw", MetricKind::kBandwidth}, {"msgrate", MetricKind::kMessageRate},
    {"cpu", MetricKind::kCpu},      {"errors", MetricKind::kErrors},
    {"count", MetricKind::kCount},  {"lost_wakeups", MetricKind::kLostWakeups},
};
constexpr std::string_view kCounterPrefix = "counter.";

struct Unit {
  std::string_view name;
  double factor;  // to UnitOf
};
constexpr Unit kTimes[] = {{"ns", 1}, {"us", 1e3}, {"\u00b5s", 1e3}, {"ms", 1e6}, {"s", 1e9}};
constexpr Unit kBandwidths[] = {{"Gb/s", 1},   {"Mb/s", 1e-3}, {"Kb/s", 1e-6}, {"Tb/s", 1e3},
                                {"b/s", 1e-9}, {"GB/s", 8},    {"MB/s", 8e-3}, {"KB/s", 8e-6},
                                {"B/s", 8e-9}, {"Gbps", 1},    {"Gbit/s", 1},  {"Mbit/s", 1e-3}};
constexpr Unit kRates[] = {{"/s", 1},     {"K/s", 1e3},    {"M/s", 1e6},    {"G/s", 1e9},
                           {"msg/s", 1},  {"Kmsg/s", 1e3}, {"Mmsg/s", 1e6}, {"pps", 1},
                           {"Kpps", 1e3}, {"Mpps", 1e6}};
constexpr Unit kShares[] = {{"%", 1}};

std::span<const Unit> UnitsOf(const GateMetric& metric) {
  if (metric.is_latency()) return kTimes;
  if (metric.kind == MetricKind::kBandwidth) return kBandwidths;
  if (metric.kind == MetricKind::kMessageRate) return kRates;
  if (metric.kind == MetricKind::kCpu) return kShares;
  return {};
}

tl::unexpected<Error> UnknownMetric(std::string_view text) {
  return Fail(
      UsageError(fmt::format("\"{}\" is no metric", text), {},
                 "known are min, max, mean, stdev, percentiles such as p50 and p99.9, bw, msgrate, "
                 "cpu, errors, count, counter.NAME and lost_wakeups"));
}

std::string UnitList(std::span<const Unit> units) {
  std::string list;
  for (const Unit& unit : units.first(std::min<size_t>(units.size(), 7))) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", unit.name);
  }
  return list;
}

}  // namespace

Expected<GateMetric> ParseGateMetric(std::string_view text) {
  for (const auto& [word, kind] : kWords) {
    if (text == word) return GateMetric{.kind = kind};
  }
  if (text.starts_with(kCounterPrefix)) {
    const std::string_view name = text.substr(kCounterPrefix.size());
    constexpr std::string_view kLetters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (name.empty() || name.find_first_not_of(kLetters) != name.npos) {
      return Fail(UsageError(fmt::format("\"{}\" names no counter", text), {},
                             "write counter.NAME with a name that the report shows"));
    }
    return GateMetric{.kind = MetricKind::kCounter, .counter = std::string(name)};
  }
  if (!text.starts_with('p')) return UnknownMetric(text);
  const std::optional<Percentile> percentile = Percentile::Parse(text.substr(1));
  if (percentile) return GateMetric{.kind = MetricKind::kPercentile, .percentile = percentile};
  if (text == "p100" || text == "p0") {
    return Fail(UsageError(fmt::format("{} is not a percentile", text), {},
                           fmt::format("write {}", text == "p0" ? "min" : "max")));
  }
  return UnknownMetric(text);
}

std::string ToText(const GateMetric& metric) {
  for (const auto& [word, kind] : kWords) {
    if (metric.kind == kind) return std::string(word);
  }
  if (metric.kind == MetricKind::kCounter) return std::string(kCounterPrefix) + metric.counter;
  return "p" + metric.percentile.value_or(kP50).Text();
}

std::string_view UnitOf(const GateMetric& metric) {
  const std::span<const Unit> units = UnitsOf(metric);
  return units.empty() ? "" : units.front().name;
}

Expected<double> ParseGateValue(const GateMetric& metric, std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string name = ToText(metric);
  if (problem != std::errc() || !std::isfinite(value) || value < 0) {
    return Fail(UsageError(fmt::format("\"{}\" is no value for {}", text, name), {},
                           "write a number of 0 or more with its unit, or baseline*FACTOR"));
  }
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const std::span<const Unit> units = UnitsOf(metric);
  if (units.empty()) {
    if (unit.empty()) return value;
    return Fail(
        UsageError(fmt::format("{} is a number of things and has no unit \"{}\"", name, unit), {},
                   fmt::format("write {}", value)));
  }
  for (const Unit& known : units) {
    if (unit == known.name && std::isfinite(value * known.factor)) return value * known.factor;
  }
  return Fail(UsageError(unit.empty() ? fmt::format("the value {} of {} has no unit", text, name)
                                      : fmt::format("{} is not measured in \"{}\"", name, unit),
                         {}, fmt::format("units of {} are {}", name, UnitList(units))));
}

bool CanYield(std::string_view command, const GateMetric& metric) {
  const auto is = [command](auto... names) { return ((command == names) || ...); };
  const bool round_trips = is("send-lat", "write-lat", "read-lat", "atomic-lat");
  const bool streams = is("send-bw", "write-bw", "read-bw");
  const bool modes = is("event-vs-poll");
  if (metric.is_latency()) {
    return round_trips || modes || is("imm", "zero-len-recv", "rnr-test", "verb-cost");
  }
  switch (metric.kind) {
    case MetricKind::kBandwidth:
      return streams || modes || is("cq-scale");
    case MetricKind::kMessageRate:
      return streams || round_trips || modes || is("cq-scale");
    case MetricKind::kCpu:
    case MetricKind::kLostWakeups:
      return streams || round_trips || modes || is("cq-scale");
    case MetricKind::kCount:
      return !is("cq-overrun");
    case MetricKind::kCounter:
      return streams || round_trips || modes || is("rnr-test");
    default:
      return true;
  }
}

}  // namespace verbscope
