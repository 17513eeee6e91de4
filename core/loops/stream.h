// Many messages in flight on one or more queue pairs: the fast path of send-bw, write-bw and
// read-bw. One loop for both sides and both directions, on one CQ per side: a side sends, takes
// what the other sends, or both.
//
// Sending. Each queue pair has up to `depth` requests in flight, posted in lists of `post_list`,
// one in `signal_every` signalled. Its completion stands for all before it (IBTA vol. 1, 10.8.6),
// and its wr_id says how many those are, so that a completion that comes out of order, or never, is
// found. The last request of a phase is always signalled: nothing is left unaccounted.
//
// Receiving. SENDs, and WRITEs with immediate, need receives, and a sender can outrun a receiver
// whose thread is not running. What would then come is RNR NAKs and pauses of the RNR timer; they
// would measure the timer. So the receiver tells how many receives it has given back, in an empty
// SEND with immediate for about every quarter of its queue, and the sender never has more messages
// on the way than the receiver has receives. RNR therefore cannot happen, and a NAK that a counter
// shows is a finding.
//
// Time. From before the first post to the last completion of a send; at a receiver from when it was
// ready to its last receive completion. The clock is read once per batch of completions.
//
// Threads as in ping_pong.h; the loop allocates, formats and logs nothing.
#ifndef VERBSCOPE_CORE_LOOPS_STREAM_H_
#define VERBSCOPE_CORE_LOOPS_STREAM_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <span>

#include "core/clock/clock.h"
#include "core/loops/loop.h"
#include "core/loops/rate_recorder.h"
#include "core/plan/plan.h"
#include "core/wait/stop.h"
#include "transports/device.h"

namespace verbscope {

// Immediate data with this bit tells of receives that were given back; the rest is their number.
inline constexpr uint32_t kCreditBit = 0x8000'0000;
// Receives beyond those for messages: unprocessed credits (at most five) and a batch of consumed
// ones not yet given back.
inline constexpr uint32_t kCreditReceives = 32;
// Credit messages in a send queue, one in kCreditsPerSignal signalled.
inline constexpr uint32_t kCreditSlots = 16;
inline constexpr uint32_t kCreditsPerSignal = 4;

// One queue pair; outlives a phase, its counters go on.
struct StreamQp {
  ibv_qp* qp = nullptr;

  std::span<ibv_send_wr> list;   // linked requests, `post_list` of them
  uint64_t posted = 0;           // requests
  uint64_t completed = 0;        // of those, known to be done
  uint64_t window = UINT64_MAX;  // may be posted in all: what the peer has receives for
  uint64_t phase_start = 0;      // posted when the phase began
  uint64_t quota = 0;            // requests of this phase
  uint32_t unsignalled = 0;      // since the last signalled one
  uint64_t signals = 0;          // signalled requests without completion
  uint64_t taken = 0;            // completions of every kind

  std::span<ibv_recv_wr> recv_batch;  // linked
  uint32_t consumed = 0;              // receives to give back, fewer than a batch
  uint32_t consumed_data = 0;         // of those, by messages
  uint32_t to_grant = 0;              // receives given back that the peer does not know of
  uint32_t grant_every = 1;
  ibv_send_wr* credit = nullptr;
  uint64_t credits_posted = 0;
  uint64_t credits_done = 0;
};

struct StreamSetup {
  Device* device = nullptr;
  ibv_cq* cq = nullptr;
  std::span<StreamQp> qps;
  bool sends = false;
  bool receives = false;      // the peer's messages consume receives here
  bool grants = false;        // and the peer waits for their being given back
  unsigned flags = 0;         // of an unsignalled request
  uint32_t depth = 1;         // requests in flight per queue pair
  uint32_t signal_every = 1;  // 1 … depth - post_list + 1
  bool shares_cpu = false;
  StopSignal* stop = nullptr;
  RateRecorder* sent = nullptr;      // if it sends
  RateRecorder* received = nullptr;  // if it receives
};

// A side that sends returns when what it sent in `length` is complete; one that only receives, when
// it is stopped or has taken length.messages. `received` counts messages of the peer, `samples` own
// messages that completed.
LoopOutcome RunStream(const StreamSetup& setup, LoopLength length, WaitMode wait,
                      const Clock& clock);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_STREAM_H_
