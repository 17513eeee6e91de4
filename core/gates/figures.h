// Figures of results, as assertions and baselines take them. Pure functions, any thread.
#ifndef VERBSCOPE_CORE_GATES_FIGURES_H_
#define VERBSCOPE_CORE_GATES_FIGURES_H_

#include <cstdint>
#include <optional>

#include "core/gates/metric.h"
#include "core/record/record.h"
#include "core/statistics/rank.h"

namespace verbscope {

// Whether the result is one that the metric is about: a result without latency has no p99, whatever
// it is.
bool IsAbout(const GateMetric& metric, const Result& result);

// The figure in UnitOf(metric); absent if it is not known, or if there are too few samples to tell
// it. Percentiles are nearest-rank samples, to one bucket. Not for metrics of the run.
std::optional<double> FigureOf(const GateMetric& metric, const Result& result);

// Of the run: checks that failed, and one for what broke it.
double ErrorsOf(const Record& record);

// What the figure rests on: samples of a latency, messages of a stream; absent for others.
std::optional<uint64_t> SamplesOf(const GateMetric& metric, const Result& result);

// As many independent samples would leave the percentile as uncertain. Of a percentile that is not
// reported, the worse of its neighbours'. All samples where it cannot be told.
uint64_t EffectiveOf(Percentile percentile, const LatencyMetrics& latency);

// The same for the mean, which bursts in any part of the distribution move: the least of all
// percentiles' that are known.
uint64_t EffectiveOfMean(const LatencyMetrics& latency);

// Whether the run was long enough to tell whether its samples come in bursts.
bool KnowsBursts(const LatencyMetrics& latency);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_GATES_FIGURES_H_
