// What all measuring loops have in common: how long they run, what they count, how they end.
#ifndef VERBSCOPE_CORE_LOOPS_LOOP_H_
#define VERBSCOPE_CORE_LOOPS_LOOP_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "core/base/error.h"
#include "core/wait/wait.h"

namespace verbscope {

// When the requester is done: at `messages` samples or `ticks` after the first reading, whichever
// is first. The side that answers passes kForever and is stopped.
struct LoopLength {
  uint64_t messages = UINT64_MAX;
  uint64_t ticks = UINT64_MAX;
};

enum class LoopEnd : uint8_t {
  kComplete,    // the length was reached
  kStopped,     // the StopSignal says why
  kSendFailed,  // failure holds the completion of the send queue
  kRecvFailed,  // failure holds the completion of the receive queue
  kPostFailed,  // post_errno
  kPollFailed,  // wait_error, or ibv_poll_cq returned a negative value
  kMismatch,    // mismatch: a completion or a result is not what it must be
};

// What a loop found wrong with the device's answers.
struct LoopMismatch {
  enum class Kind : uint8_t {
    kNone,
    kAtomicResult,     // the value an Atomic returned
    kOutOfOrder,       // a completion of a request before one of an earlier request, or twice
    kNoCompletion,     // fewer completions than signalled requests, though later ones completed
    kWrongCompletion,  // of a queue or queue pair that it cannot belong to
  };
  Kind kind = Kind::kNone;
  uint64_t message = 0;  // from 1
  uint64_t expected = 0;
  uint64_t got = 0;
};

// Plain counters of the loop itself: nothing in it owns memory.
struct LoopCounts {
  LoopEnd end = LoopEnd::kComplete;
  uint64_t samples = 0;      // round trips measured
  uint64_t received = 0;     // receive completions seen in this phase
  uint64_t completions = 0;  // taken from the CQ, where they are not `received`
  uint64_t first_ticks = 0;  // clock at the first reading
  uint64_t last_ticks = 0;   // clock at the last sample
  uint64_t sent = 0;         // sends posted in this phase
  ibv_wc failure = {};       // valid for kSendFailed, kRecvFailed
  int post_errno = 0;
  uint64_t late_sends = 0;  // open loop: posted more than kLateNs after they were due
  LoopMismatch mismatch;    // valid for kMismatch
};

struct LoopOutcome : LoopCounts {
  WaitCounters wait;
  std::optional<Error> wait_error;  // how arming or the channel failed, with kPollFailed
};

// Judges what a waiter answered with one completion; false: the loop ends, as `counts` says.
inline bool Judge(int got, const ibv_wc& wc, LoopEnd on_failure, LoopCounts& counts) {
  if (got <= 0) [[unlikely]] {
    counts.end = got == 0 ? LoopEnd::kStopped : LoopEnd::kPollFailed;
    return false;
  }
  if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
    counts.end = on_failure;
    counts.failure = wc;
    return false;
  }
  return true;
}

// The flags of a request, signalled or not.
inline unsigned SendFlags(unsigned flags, bool signal) {
  return signal ? flags | IBV_SEND_SIGNALED : flags;
}

// Posts a list; false: the loop ends, as `counts` says.
inline bool PostSends(ibv_qp* qp, ibv_send_wr* list, LoopCounts& counts) {
  ibv_send_wr* bad = nullptr;
  const int result = ibv_post_send(qp, list, &bad);
  if (result == 0) [[likely]] {
    return true;
  }
  counts.end = LoopEnd::kPostFailed;
  counts.post_errno = result;
  return false;
}
inline bool PostReceives(ibv_qp* qp, ibv_recv_wr* list, LoopCounts& counts) {
  ibv_recv_wr* bad = nullptr;
  const int result = ibv_post_recv(qp, list, &bad);
  if (result == 0) [[likely]] {
    return true;
  }
  counts.end = LoopEnd::kPostFailed;
  counts.post_errno = result;
  return false;
}

// The time `ticks` after `from`, for ever where that does not fit.
inline uint64_t EndOf(uint64_t from, uint64_t ticks) {
  return ticks > UINT64_MAX - from ? UINT64_MAX : from + ticks;
}

enum class LoopRole { kRequester, kResponder };

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_LOOP_H_
