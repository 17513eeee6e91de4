// What both roles do once they agree on plan and path: every repeat of every size, then the sides'
// records.
#ifndef VERBSCOPE_CORE_SESSION_RUN_POINTS_H_
#define VERBSCOPE_CORE_SESSION_RUN_POINTS_H_

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/loops/loop.h"
#include "core/record/record.h"
#include "core/session/session.h"
#include "core/session/side.h"
#include "core/session/steps.h"
#include "transports/control/peer_link.h"

namespace verbscope {

// Fills record.results as results come, also those of a run that breaks, and record.remote.
Status RunPoints(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
                 const SessionContext& context, Deadline deadline, Farewell& farewell,
                 Record& record);

// The end of both kinds of run, after a failure or not: this side's record, told the other when all
// went well.
Status EndRun(Status status, SideState& side, PeerLink& link, const SessionContext& context,
              Deadline deadline, Farewell& farewell, Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_RUN_POINTS_H_
