// The third kind of run: event-vs-poll, the same work under several ways of waiting and loads. Each
// point is a PointRun with a plan of its own (core/plan/mode_plan.h).
#ifndef VERBSCOPE_CORE_SESSION_RUN_MODES_H_
#define VERBSCOPE_CORE_SESSION_RUN_MODES_H_

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/loops/loop.h"
#include "core/record/record.h"
#include "core/session/session.h"
#include "core/session/side.h"
#include "core/session/steps.h"
#include "transports/control/peer_link.h"

namespace verbscope {

// First each side watches its host for gaps, one after the other; then the rate that busy polling
// sustains, if a load needs it; then all points. Fills record.results as points end, also of a run
// that breaks, record.modes (on the requester), a check of lost wake-ups, and record.remote.
Status RunModes(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
                const SessionContext& context, Deadline deadline, Farewell& farewell,
                Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_RUN_MODES_H_
