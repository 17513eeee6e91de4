// Why a loop did not end as planned, in an Error: from its outcome, from what is left in the CQs,
// and from what the control thread knows.
#ifndef VERBSCOPE_CORE_SESSION_RUN_FAILURE_H_
#define VERBSCOPE_CORE_SESSION_RUN_FAILURE_H_

#include <cstdint>
#include <optional>

#include "core/base/error.h"
#include "core/endpoint/endpoint.h"
#include "core/loops/loop.h"
#include "core/plan/operation.h"
#include "core/plan/plan.h"
#include "core/session/monitor.h"
#include "core/session/side.h"
#include "transports/control/peer_link.h"

namespace verbscope {

// What the explanation draws on; all must live while it is made.
struct FailedRun {
  const SideState& side;
  const Plan& plan;
  const Operation& operation;
  Endpoint& endpoint;
  const EndpointInfo& remote;
  Monitor& monitor;
  PeerLink& link;
  uint64_t size_bytes = 0;
  uint64_t messages_before = 0;          // of finished phases on these connections
  std::optional<uint64_t> passed_bytes;  // the largest size that the session has run to its end
};

// Takes what is left in the CQs.
Error ExplainFailure(const FailedRun& run, const LoopOutcome& outcome);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_RUN_FAILURE_H_
