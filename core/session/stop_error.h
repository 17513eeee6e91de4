// Why a wait was stopped, as the error of the run.
#ifndef VERBSCOPE_CORE_SESSION_STOP_ERROR_H_
#define VERBSCOPE_CORE_SESSION_STOP_ERROR_H_

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "core/session/monitor.h"
#include "core/wait/stop.h"
#include "transports/control/peer_link.h"

namespace verbscope {

// When the peer was lost, the link knows how: an abort with the peer's own error, or the way the
// connection ended. On the session's thread; may wait for that up to one second.
Error StopError(StopReason reason, PeerLink& link, const Monitor& monitor, const Plan& plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_STOP_ERROR_H_
