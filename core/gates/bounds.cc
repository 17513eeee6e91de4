#include "core/gates/bounds.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/gates/figures.h"
#include "core/record/percentile.h"
#include "core/statistics/rank.h"

namespace verbscope {
namespace {

constexpr double kZ95 = 1.6448536269514722;  // one-sided
constexpr uint64_t kLeastForMean = 30;
// Beyond this a number of samples is no advice.
constexpr double kMostNeeded = 1e15;

// Of samples that come as these do.
std::optional<uint64_t> InAll(double effective_needed, uint64_t samples, uint64_t effective) {
  const double needed =
      std::ceil(effective_needed * static_cast<double>(samples) / static_cast<double>(effective));
  if (!(needed < kMostNeeded)) return std::nullopt;
  return static_cast<uint64_t>(needed);
}

// The figure lies between both bounds with 95 % on either side: the one that satisfies the
// comparison least decides on passing, the other on failing.
void Decide(std::optional<double> low, std::optional<double> high, GateOp op, double limit,
            GateOutcome& outcome) {
  const std::optional<double>& worst = IsUpper(op) ? high : low;
  const std::optional<double>& best = IsUpper(op) ? low : high;
  if (worst && Holds(op, *worst, limit)) {
    outcome.status = "pass";
    outcome.bound = worst;
  } else if (best && !Holds(op, *best, limit)) {
    outcome.status = "fail";
    outcome.bound = best;
  } else {
    outcome.status = "inconclusive";
    outcome.bound = worst;
  }
}

// The fewest samples for a bound on the side that decides on passing: the lowest samples bound a
// percentile from below as the highest do from above.
double LeastFor(Percentile percentile, GateOp op) {
  const Percentile mirrored(Percentile::kWhole - percentile.parts());
  return static_cast<double>(MinSamplesOneSided(IsUpper(op) ? percentile : mirrored));
}

// Samples of the histogram that the limit says are too many above (below) it.
uint64_t Beyond(const LatencyMetrics& latency, GateOp op, double limit) {
  uint64_t count = 0;
  for (const HistogramBucket& bucket : latency.buckets) {
    const double edge = static_cast<double>(IsUpper(op) ? bucket.to_ns : bucket.from_ns);
    if (!Holds(op, edge, limit)) count += bucket.count;
  }
  return count;
}

// The bounds separate from the limit when the share of samples beyond it and the percentile's own
// share differ by the uncertainty of a rank.
std::optional<uint64_t> NeededFor(const LatencyMetrics& latency, Percentile percentile, GateOp op,
                                  double limit, uint64_t effective) {
  const double q = static_cast<double>(percentile.parts()) / Percentile::kWhole;
  const double share = IsUpper(op) ? 1 - q : q;
  const double seen =
      static_cast<double>(Beyond(latency, op, limit)) / static_cast<double>(latency.samples);
  const double apart = std::abs(seen - share);
  const double needed =
      std::max(kZ95 * kZ95 * q * (1 - q) / (apart * apart), LeastFor(percentile, op));
  std::optional<uint64_t> in_all = InAll(needed, latency.samples, effective);
  if (in_all) in_all = std::max(*in_all, latency.samples + 1);
  return in_all;
}

}  // namespace

GateOutcome JudgePercentile(const LatencyMetrics& latency, Percentile percentile, GateOp op,
                            double limit) {
  const uint64_t samples = latency.samples;
  const uint64_t effective = std::clamp<uint64_t>(EffectiveOf(percentile, latency), 1, samples);
  GateOutcome outcome{.limit = limit, .samples = samples, .effective_samples = effective};
  if (IsResolved(percentile, samples)) {
    outcome.observed =
        static_cast<double>(BucketAtRank(latency, NearestRank(percentile, samples)).to_ns);
  }
  const RankBounds ranks = OneSided95(percentile, effective);
  std::optional<double> low;
  std::optional<double> high;
  if (ranks.lower) {
    const uint64_t rank = ScaleRankDown(*ranks.lower, effective, samples);
    low = static_cast<double>(BucketAtRank(latency, rank).from_ns);
  }
  if (ranks.upper) {
    const uint64_t rank = ScaleRankUp(*ranks.upper, effective, samples);
    high = static_cast<double>(BucketAtRank(latency, rank).to_ns);
  }
  Decide(low, high, op, limit, outcome);
  if (outcome.status != "inconclusive") return outcome;
  if (!outcome.bound) {
    outcome.samples_needed = InAll(LeastFor(percentile, op), samples, effective);
  } else {
    outcome.samples_needed = NeededFor(latency, percentile, op, limit, effective);
    if (!outcome.samples_needed) {
      outcome.why = "the percentile lies at the limit: no number of samples would tell them apart";
    }
  }
  return outcome;
}

GateOutcome JudgeMean(const LatencyMetrics& latency, GateOp op, double limit) {
  const uint64_t samples = latency.samples;
  const uint64_t effective = std::clamp<uint64_t>(EffectiveOfMean(latency), 1, samples);
  GateOutcome outcome{.observed = latency.mean_ns,
                      .limit = limit,
                      .samples = samples,
                      .effective_samples = effective};
  if (!latency.mean_ns || !latency.stdev_ns || effective < kLeastForMean) {
    outcome.status = "inconclusive";
    outcome.samples_needed = InAll(static_cast<double>(kLeastForMean), samples, effective);
    return outcome;
  }
  const double error = kZ95 * *latency.stdev_ns / std::sqrt(static_cast<double>(effective));
  Decide(*latency.mean_ns - error, *latency.mean_ns + error, op, limit, outcome);
  if (outcome.status != "inconclusive") return outcome;
  const double apart = std::abs(*latency.mean_ns - limit);
  const double ratio = kZ95 * *latency.stdev_ns / apart;
  outcome.samples_needed = InAll(ratio * ratio, samples, effective);
  if (!outcome.samples_needed) {
    outcome.why = "the mean lies at the limit: no number of samples would tell them apart";
  }
  return outcome;
}

GateOutcome JudgeExact(double figure, GateOp op, double limit) {
  return {.status = Holds(op, figure, limit) ? "pass" : "fail",
          .observed = figure,
          .bound = figure,
          .limit = limit};
}

}  // namespace verbscope
