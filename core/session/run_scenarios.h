// The other kind of run: a command of several steps, each a scenario of core/scenario.
#ifndef VERBSCOPE_CORE_SESSION_RUN_SCENARIOS_H_
#define VERBSCOPE_CORE_SESSION_RUN_SCENARIOS_H_

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/loops/ping_pong.h"
#include "core/record/record.h"
#include "core/session/session.h"
#include "core/session/side.h"
#include "core/session/steps.h"
#include "transports/control/peer_link.h"

namespace verbscope {

// Fills record.checks and record.results as scenarios end, of both sides and in the same order on
// both, also those of a run that breaks; and record.remote. Failed checks are no failure of this
// function: SetVerdict looks at them.
Status RunScenarios(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
                    const SessionContext& context, Deadline deadline, Farewell& farewell,
                    Record& record);

// RunScenarios or RunPoints, whichever the plan's command needs.
Status RunWork(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
               const SessionContext& context, Deadline deadline, Farewell& farewell,
               Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_RUN_SCENARIOS_H_
