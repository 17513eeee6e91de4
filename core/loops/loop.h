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
};

// Plain counters of the loop itself: nothing in it owns memory.
struct LoopCounts {
  LoopEnd end = LoopEnd::kComplete;
  uint64_t samples = 0;      // round trips measured
  uint64_t received = 0;     // receive completions seen in this phase
  uint64_t first_ticks = 0;  // clock at the first reading
  uint64_t last_ticks = 0;   // clock at the last sample
  uint64_t sent = 0;         // sends posted in this phase
  ibv_wc failure = {};       // valid for kSendFailed, kRecvFailed
  int post_errno = 0;
};

struct LoopOutcome : LoopCounts {
  WaitCounters wait;
  std::optional<Error> wait_error;  // how arming or the channel failed, with kPollFailed
};

enum class LoopRole { kRequester, kResponder };

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_LOOP_H_
