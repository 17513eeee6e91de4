// One operation after the other, each awaited: the fast path of read-lat and atomic-lat. The
// requester posts and waits for the completion of what it posted; the responder's program takes no
// part in it.
//
// What a sample is. The clock is read before the post and when the completion is seen: one full
// operation. Recording, and checking what an Atomic returned, is done between two operations and
// lies in no sample.
//
// What the responder does. Where the program's polls serve the peer (Device::ServesInPolls), it
// waits for completions that must not come, in its own way of waiting: who polls serves the
// requests at once, who sleeps leaves them to the device's own thread. On other devices it sleeps.
//
// The loops allocate, format and log nothing and look at no option. Threads as in ping_pong.h.
#ifndef VERBSCOPE_CORE_LOOPS_ROUND_TRIP_H_
#define VERBSCOPE_CORE_LOOPS_ROUND_TRIP_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/clock/clock.h"
#include "core/loops/atomic_results.h"
#include "core/loops/interval_recorder.h"
#include "core/loops/loop.h"
#include "core/plan/plan.h"
#include "core/wait/stop.h"
#include "transports/device.h"

namespace verbscope {

struct RoundTripSetup {
  Device* device = nullptr;
  ibv_qp* qp = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;       // the responder waits here
  ibv_send_wr* request = nullptr;  // signalled
  AtomicOp atomic_op = AtomicOp::kFetchAdd;
  AtomicSlots* atomic = nullptr;  // null: no Atomic
  bool shares_cpu = false;        // busy pollers yield: too few CPUs for both sides
  StopSignal* stop = nullptr;
  IntervalRecorder* recorder = nullptr;
};

// The requester's phase. `received` counts completions, `failure` is of the send queue.
LoopOutcome RunRoundTrips(const RoundTripSetup& setup, LoopLength length, WaitMode wait,
                          const Clock& clock);
// The responder's: until it is stopped. `received` counts what should not have come.
LoopOutcome RunServed(const RoundTripSetup& setup, WaitMode wait, const Clock& clock);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_ROUND_TRIP_H_
