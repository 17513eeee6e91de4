// One phase of a point on one side, warm-up or measured: the recorders, the loop that the command
// and the role ask for, and what came of it. Made for one phase, by the session's thread.
#ifndef VERBSCOPE_CORE_SESSION_PHASE_H_
#define VERBSCOPE_CORE_SESSION_PHASE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/endpoint/endpoint.h"
#include "core/loops/interval_recorder.h"
#include "core/loops/loop.h"
#include "core/loops/rate_recorder.h"
#include "core/plan/operation.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "core/session/monitor.h"
#include "core/session/side.h"

namespace verbscope {

// What a side does in a run.
struct Part {
  bool sends = false;     // its own messages, by time or number
  bool receives = false;  // the peer's messages complete receives here
  bool measures_latency = false;
};
Part PartOf(LoopRole role, const Operation& operation, const Plan& plan);
// Whether the responder of such a plan sleeps through its phases on such a device.
bool ResponderSleeps(const Plan& plan, const Device& device);

class Phase {
 public:
  // All must outlive the phase.
  Phase(LoopRole role, const Operation& operation, const Plan& plan, const SideState& side,
        Endpoint& endpoint, Monitor& monitor);

  // A side that sends: until `length` is over. Another: until it is stopped.
  LoopOutcome Run(LoopLength length);
  // Both directions: what the peer still sends when this side has finished, until it is stopped.
  LoopOutcome RunTail();
  // Streams, after this side was stopped: the last `messages`, which were on their way then.
  // kComplete if they came within two seconds.
  LoopOutcome Drain(uint64_t messages);

  // After the last loop.
  void Finish(const LoopOutcome& outcome);
  // Null: this side measures no latency.
  IntervalRecorder* latency() { return part_.measures_latency ? latency_.get() : nullptr; }
  // Of what this side sent, or, if it only received, of that.
  std::optional<BandwidthMetrics> Bandwidth() const;
  std::vector<IntervalRow> TakeIntervals();

 private:
  LoopOutcome RunLatency(LoopLength length);
  LoopOutcome RunOpen(LoopLength length);
  LoopOutcome RunStreams(bool sends, LoopLength length);
  LoopOutcome RunIdle();
  const RateRecorder& OwnRate() const { return part_.sends ? sent_ : received_; }

  const LoopRole role_;
  const Operation& operation_;
  const Plan& plan_;
  const SideState& side_;
  Endpoint& endpoint_;
  Monitor& monitor_;
  const Part part_;
  std::unique_ptr<IntervalRecorder> latency_;
  RateRecorder sent_;
  RateRecorder received_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_PHASE_H_
