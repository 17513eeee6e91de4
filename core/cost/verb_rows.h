// The rows of verb-cost, group by group. Each makes the objects it needs, measures, and destroys
// them. What the device does not have becomes a skipped check with the reason; a failure ends the
// run.
//
// Functions without state; the measuring thread.
#ifndef VERBSCOPE_CORE_COST_VERB_ROWS_H_
#define VERBSCOPE_CORE_COST_VERB_ROWS_H_

#include <cstdint>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/cost/cost_meter.h"
#include "core/cost/cost_plan.h"
#include "core/cost/loopback_pair.h"
#include "core/record/record.h"

namespace verbscope {

// post_rows.cc
Status MeasurePostSend(CostMeter& meter, const CostStage& stage);
Status MeasureExtendedPost(CostMeter& meter, const CostStage& stage);
Status MeasurePostReceive(CostMeter& meter, const CostStage& stage);
// poll_rows.cc
Status MeasurePollCq(CostMeter& meter, const CostStage& stage);
Status MeasureStartPoll(CostMeter& meter, const CostStage& stage);
// event_rows.cc
Status MeasureNotify(CostMeter& meter, const CostStage& stage);
Status MeasureGetEvent(CostMeter& meter, const CostStage& stage);
// memory_rows.cc
Status MeasureRegister(CostMeter& meter, const CostStage& stage, uint64_t max_bytes);
// object_rows.cc
Status MeasureQueuePair(CostMeter& meter, const CostStage& stage);
Status MeasureCq(CostMeter& meter, const CostStage& stage);
Status MeasureModifyQp(CostMeter& meter, const CostStage& stage);

// The identity of a row; what else it needs is set by whoever asks.
inline Point CostPoint(std::string op, uint64_t size_bytes = 0) {
  Point point;
  point.op = std::move(op);
  point.size_bytes = size_bytes;
  point.wait = "busy";
  return point;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COST_VERB_ROWS_H_
