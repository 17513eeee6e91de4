// One figure against one limit. Private to core/gates; pure functions, any thread.
#ifndef VERBSCOPE_CORE_GATES_BOUNDS_H_
#define VERBSCOPE_CORE_GATES_BOUNDS_H_

#include "core/gates/assertion.h"
#include "core/record/gate_row.h"
#include "core/record/record.h"

namespace verbscope {

GateOutcome JudgePercentile(const LatencyMetrics& latency, Percentile percentile, GateOp op,
                            double limit);
GateOutcome JudgeMean(const LatencyMetrics& latency, GateOp op, double limit);
GateOutcome JudgeExact(double figure, GateOp op, double limit);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_GATES_BOUNDS_H_
