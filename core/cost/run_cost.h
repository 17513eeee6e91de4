// The whole run of verb-cost: chooses and opens the device as any command does, measures the rows
// of the plan on two QPs of this process, and fills the record.
//
// Blocks the calling thread, which is the measuring one, until it is over. Nothing here writes to
// standard output.
#ifndef VERBSCOPE_CORE_COST_RUN_COST_H_
#define VERBSCOPE_CORE_COST_RUN_COST_H_

#include "core/cost/cost_plan.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "core/session/context.h"

namespace verbscope {

struct CostOptions {
  CostPlan plan;
  LocalSettings settings;
};

// Fills local, results, checks, notices, error, verdict and exit_code, also when it fails. The
// verdict is "pass" when anything but the clock was measured, "inconclusive" when all was skipped.
void RunVerbCost(const SessionContext& context, const CostOptions& options, Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COST_RUN_COST_H_
