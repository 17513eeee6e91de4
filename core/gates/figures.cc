#include "core/gates/figures.h"

#include <algorithm>
#include <cmath>

#include "core/record/percentile.h"

namespace verbscope {
namespace {

std::optional<double> Real(const std::optional<int64_t>& ns) {
  return ns ? std::optional(static_cast<double>(*ns)) : std::nullopt;
}

std::optional<double> LatencyFigure(const GateMetric& metric, const LatencyMetrics& latency) {
  switch (metric.kind) {
    case MetricKind::kMin:
      return Real(latency.min_ns);
    case MetricKind::kMax:
      return Real(latency.max_ns);
    case MetricKind::kMean:
      return latency.mean_ns;
    case MetricKind::kStdev:
      return latency.stdev_ns;
    default:
      break;
  }
  const Percentile percentile = metric.percentile.value_or(kP50);
  if (!IsResolved(percentile, latency.samples)) return std::nullopt;
  const uint64_t rank = NearestRank(percentile, latency.samples);
  return static_cast<double>(BucketAtRank(latency, rank).to_ns);
}

std::optional<double> MessageRate(const Metrics& metrics) {
  if (metrics.bandwidth) return metrics.bandwidth->msg_per_s;
  return metrics.load ? metrics.load->achieved_per_s : std::nullopt;
}

}  // namespace

bool IsAbout(const GateMetric& metric, const Result& result) {
  const Metrics& metrics = result.metrics;
  if (metric.is_latency()) return metrics.latency.has_value();
  switch (metric.kind) {
    case MetricKind::kBandwidth:
      return metrics.bandwidth.has_value();
    case MetricKind::kMessageRate:
      return metrics.bandwidth || metrics.load;
    case MetricKind::kCpu:
    case MetricKind::kLostWakeups:
      return metrics.cpu.has_value();
    case MetricKind::kCount:
      return metrics.latency || metrics.bandwidth;
    case MetricKind::kCounter:
      return metrics.counters.contains(metric.counter);
    default:
      return false;
  }
}

std::optional<double> FigureOf(const GateMetric& metric, const Result& result) {
  if (!IsAbout(metric, result)) return std::nullopt;
  const Metrics& metrics = result.metrics;
  if (metric.is_latency()) return LatencyFigure(metric, *metrics.latency);
  switch (metric.kind) {
    case MetricKind::kBandwidth:
      return metrics.bandwidth->gbit_per_s;
    case MetricKind::kMessageRate:
      return MessageRate(metrics);
    case MetricKind::kCpu:
      if (!metrics.cpu->utilization) return std::nullopt;
      return *metrics.cpu->utilization * 100;
    case MetricKind::kLostWakeups:
      return static_cast<double>(metrics.cpu->lost_wakeups);
    case MetricKind::kCount:
      return static_cast<double>(metrics.latency ? metrics.latency->samples
                                                 : metrics.bandwidth->messages);
    case MetricKind::kCounter:
      return static_cast<double>(metrics.counters.at(metric.counter));
    default:
      return std::nullopt;
  }
}

double ErrorsOf(const Record& record) {
  const auto failed = std::ranges::count(record.checks, "fail", &CheckRow::status);
  return static_cast<double>(failed) + (record.error ? 1 : 0);
}

std::optional<uint64_t> SamplesOf(const GateMetric& metric, const Result& result) {
  const Metrics& metrics = result.metrics;
  if (metric.is_latency() && metrics.latency) return metrics.latency->samples;
  const bool streams =
      metric.kind == MetricKind::kBandwidth || metric.kind == MetricKind::kMessageRate;
  if (streams && metrics.bandwidth) return metrics.bandwidth->messages;
  return std::nullopt;
}

uint64_t EffectiveOf(Percentile percentile, const LatencyMetrics& latency) {
  // The last known row at or below the percentile, and the first above it.
  std::optional<uint64_t> below;
  std::optional<uint64_t> above;
  for (const PercentileRow& row : latency.percentiles) {
    const std::optional<Percentile> known = Percentile::Parse(row.percent);
    if (!known || !row.effective_samples) continue;
    if (known->parts() == percentile.parts()) return *row.effective_samples;
    if (known->parts() < percentile.parts()) {
      below = row.effective_samples;
    } else if (!above) {
      above = row.effective_samples;
    }
  }
  const uint64_t least = std::min(below.value_or(latency.samples), above.value_or(latency.samples));
  return std::min(least, latency.samples);
}

uint64_t EffectiveOfMean(const LatencyMetrics& latency) {
  uint64_t least = latency.samples;
  for (const PercentileRow& row : latency.percentiles) {
    least = std::min(least, row.effective_samples.value_or(least));
  }
  return least;
}

bool KnowsBursts(const LatencyMetrics& latency) {
  return std::ranges::any_of(latency.percentiles, [](const PercentileRow& row) {
    return row.effective_samples.has_value();
  });
}

}  // namespace verbscope
