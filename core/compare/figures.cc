#include "core/compare/figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "core/record/percentile.h"
#include "core/record/point_text.h"

namespace verbscope {
namespace {

using ValueOf = std::function<std::optional<double>(const Metrics&)>;

template <class T>
std::optional<double> Real(const std::optional<T>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

ValueOf AtPercentOf(std::string_view percent) {
  return [percent](const Metrics& metrics) {
    return metrics.latency ? Real(AtPercent(*metrics.latency, percent)) : std::nullopt;
  };
}

std::optional<double> Mean(const Metrics& metrics) {
  return metrics.latency ? metrics.latency->mean_ns : std::nullopt;
}
std::optional<double> Longest(const Metrics& metrics) {
  return metrics.latency ? Real(metrics.latency->max_ns) : std::nullopt;
}
std::optional<double> Bits(const Metrics& metrics) {
  // Messages of no bytes have a rate of no bits, which says nothing.
  if (!metrics.bandwidth || metrics.bandwidth->bytes == 0) return std::nullopt;
  return metrics.bandwidth->gbit_per_s;
}
std::optional<double> Messages(const Metrics& metrics) {
  return metrics.bandwidth ? metrics.bandwidth->msg_per_s : std::nullopt;
}
std::optional<double> Cpu(const Metrics& metrics) {
  if (!metrics.cpu || !metrics.cpu->utilization) return std::nullopt;
  return 100 * *metrics.cpu->utilization;
}

std::vector<double> Values(const std::vector<const Result*>& runs, const ValueOf& value_of) {
  std::vector<double> values;
  for (const Result* run : runs) {
    if (const std::optional<double> value = value_of(run->metrics)) values.push_back(*value);
  }
  return values;
}

bool AnyLatency(const JoinedRuns& runs) {
  return std::ranges::any_of(runs.base, [](const Result* run) {
    return run->metrics.latency && run->metrics.latency->samples > 0;
  });
}

bool AnyBandwidth(const JoinedRuns& runs) {
  return std::ranges::any_of(runs.base,
                             [](const Result* run) { return run->metrics.bandwidth.has_value(); });
}

bool EnoughState(const Figure& figure, const JoinedRuns& runs) {
  return 2 * figure.base.size() >= runs.base.size() && 2 * figure.fresh.size() >= runs.fresh.size();
}

void AddFigure(const JoinedRuns& runs, Figure figure, const ValueOf& value_of,
               std::vector<Figure>& figures) {
  figure.base = Values(runs.base, value_of);
  figure.fresh = Values(runs.fresh, value_of);
  if (figure.base.empty() && figure.fresh.empty()) return;
  figure.gated = figure.gated && EnoughState(figure, runs);
  figures.push_back(std::move(figure));
}

Figure Time(std::string metric, bool gated) {
  return {.metric = std::move(metric), .unit = "ns", .gated = gated, .base = {}, .fresh = {}};
}

Figure Rate(std::string metric, std::string unit, bool gated) {
  return {.metric = std::move(metric),
          .unit = std::move(unit),
          .kind = FigureKind::kRate,
          .less_is_better = false,
          .gated = gated,
          .base = {},
          .fresh = {}};
}

// Those that one set has at least.
std::vector<Figure> AllFigures(const JoinedRuns& runs, bool gates) {
  std::vector<Figure> figures;
  const bool latency = AnyLatency(runs);
  for (const char* percent : {"50", "99", "99.9"}) {
    AddFigure(runs, Time(std::string("p") + percent, gates), AtPercentOf(percent), figures);
  }
  AddFigure(runs, Rate("bw", "Gb/s", gates && !latency), Bits, figures);
  const bool bits = !figures.empty() && figures.back().metric == "bw";
  AddFigure(runs, Rate("msgrate", "/s", gates && !latency && !bits), Messages, figures);
  AddFigure(runs, Time("mean", false), Mean, figures);
  AddFigure(runs, Time("max", false), Longest, figures);
  AddFigure(runs,
            {.metric = "cpu", .unit = "%", .kind = FigureKind::kShare, .base = {}, .fresh = {}},
            Cpu, figures);
  std::ranges::stable_partition(figures, [](const Figure& figure) { return figure.gated; });
  return figures;
}

}  // namespace

bool SideGates(const JoinedRuns& runs, const RunTable& table) {
  if (AnyLatency(runs) || runs.point.op != "send" || !AnyBandwidth(runs)) {
    return runs.side == "requester";
  }
  if (runs.side == "responder" || runs.point.bidirectional.value_or(false)) return true;
  return std::ranges::none_of(table.rows, [&runs](const JoinedRuns& row) {
    // The same point but for how that side waits: what arrived is what counts.
    return row.side == "responder" && row.point.op == runs.point.op &&
           row.point.size_bytes == runs.point.size_bytes && row.point.qps == runs.point.qps &&
           AnyBandwidth(row);
  });
}

std::vector<Figure> FiguresOf(const JoinedRuns& runs, bool gates) {
  std::vector<Figure> figures = AllFigures(runs, gates);
  std::erase_if(figures,
                [](const Figure& figure) { return figure.base.empty() || figure.fresh.empty(); });
  return figures;
}

std::vector<std::string> LackingFigures(const JoinedRuns& runs) {
  std::vector<std::string> sentences;
  for (const Figure& figure : AllFigures(runs, true)) {
    if (!figure.base.empty() && !figure.fresh.empty()) continue;
    sentences.push_back(fmt::format("only in {}: {} of {}, {}",
                                    figure.base.empty() ? "new" : "base", figure.metric,
                                    PointText(runs.point), runs.side));
  }
  return sentences;
}

const std::vector<std::string>& MetricNames() {
  static const std::vector<std::string> names = {"p50",     "p99",  "p99.9", "bw",
                                                 "msgrate", "mean", "max",   "cpu"};
  return names;
}

}  // namespace verbscope
