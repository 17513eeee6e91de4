// Which figures of a result are compared, and what each run had. Pure functions, any thread.
#ifndef VERBSCOPE_CORE_COMPARE_FIGURES_H_
#define VERBSCOPE_CORE_COMPARE_FIGURES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/compare/run_table.h"

namespace verbscope {

// What decides how small a change of it is none.
enum class FigureKind { kTime, kRate, kShare };

// One metric of one joined point: a value per run that stated it.
struct Figure {
  std::string metric;  // "p50", "p99", "p99.9", "bw", "msgrate", "mean", "max", "cpu"
  std::string unit;    // "ns", "Gb/s", "/s", "%"
  FigureKind kind = FigureKind::kTime;
  bool less_is_better = true;
  // Whether it counts for the exit code: percentiles of a latency; of a bandwidth, bits per second,
  // or messages where they carry none. A percentile that less than half of the runs of a set could
  // state does not.
  bool gated = false;
  std::vector<double> base;
  std::vector<double> fresh;
};

// Whether a side's figures of a point can gate: those of the requester, and of the side that
// received the messages of a SEND bandwidth, which knows what arrived. `table` says which sides
// have one.
bool SideGates(const JoinedRuns& runs, const RunTable& table);

// Those that both sets have; gated ones first. `gates`: SideGates.
std::vector<Figure> FiguresOf(const JoinedRuns& runs, bool gates);

// Those that one set has and not a run of the other, whole sentences: a percentile goes missing
// with the samples for it.
std::vector<std::string> LackingFigures(const JoinedRuns& runs);

// The names that --margin takes.
const std::vector<std::string>& MetricNames();

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_FIGURES_H_
