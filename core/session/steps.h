// Small steps both roles share: frames with the session's deadline, named barriers, the errors of a
// run that was stopped, and the last words of a failing session.
#ifndef VERBSCOPE_CORE_SESSION_STEPS_H_
#define VERBSCOPE_CORE_SESSION_STEPS_H_

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/causes/completion_log.h"
#include "core/causes/join_sides.h"
#include "core/endpoint/endpoint.h"
#include "core/plan/plan.h"
#include "transports/control/peer_link.h"

namespace verbscope {

// How long a single step may wait for the peer while it is alive (heartbeats come): making and
// registering large buffers takes time.
inline constexpr std::chrono::seconds kStepTime(20);

// Both bounded by the step time and by the session's deadline, whichever is first; kDeadline when
// it was the session's. An error that came from the peer is re-classed for this side: the peer's
// own interrupt or deadline is a broken run here.
Status SendFrame(PeerLink& link, const nlohmann::json& frame, Deadline session);
Expected<nlohmann::json> ReceiveFrame(PeerLink& link, std::string_view type, Deadline session);

// Both sides come to `name`, or one of them hears that the other is somewhere else.
Status Barrier(PeerLink& link, std::string_view name, Deadline session);

// Why the peer is gone, within a second: its own error, or the way the connection ended.
Error WhyPeerLost(PeerLink& link);
Error InterruptedError();
// After Ctrl-C everything that fails fails because of it, whatever the peer or the link says of it.
Error OwnInterruptFirst(Error error, bool interrupted);
Error DeadlineError(const Plan& plan);

// Takes what is left in both CQs until the first real error was seen or the deadline has passed: it
// may be in either queue and may come a little after the first flush. Polls once in any case.
void DrainCompletions(const Endpoint& endpoint, CompletionLog& log, Deadline deadline);

// The last words of a failing session: tells the peer, hears the peer's own first error, and joins
// both. Said once, by whoever notices first; while the QPs still exist, so that the peer hears the
// reason before its own requests begin to fail for want of an answer.
class Farewell {
 public:
  explicit Farewell(PeerLink& link) : link_(link) {}
  // After the first call the link is of no use, and further calls return `own` as it is. The peer
  // gets the counters of this side's device too: what it saw of the fault.
  Error Conclude(Error own, const std::map<std::string, int64_t>& counters = {});
  // The peer's, from its own last words; empty when it said none.
  std::map<std::string, int64_t> PeerCounters() const;

 private:
  PeerLink& link_;
  bool said_ = false;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_STEPS_H_
