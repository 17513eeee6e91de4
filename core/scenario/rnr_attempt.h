// Messages to a receiver with too few receives, until the sender's retries are used up: what both
// sides see of it. The same function runs on both; the requester ends with both halves.
#ifndef VERBSCOPE_CORE_SCENARIO_RNR_ATTEMPT_H_
#define VERBSCOPE_CORE_SCENARIO_RNR_ATTEMPT_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"
#include "core/session/device_counters.h"

namespace verbscope {

struct RnrKind {
  ibv_wr_opcode opcode = IBV_WR_SEND;  // or RDMA_WRITE_WITH_IMM
  uint32_t timer_code = 12;            // what the receiver asks for
  uint32_t rnr_retry = 1;              // 0 … 6
  uint32_t sends = 1;                  // posted at once, all signalled
  uint32_t receives = 0;               // fewer than sends, posted before
};

struct RnrCompletion {
  uint64_t wr_id = 0;
  ibv_wc_status status = IBV_WC_SUCCESS;
  int64_t at_ns = 0;  // since before the first post
};

struct RnrOutcome {
  bool came = false;  // all completions, on both sides; false: no later attempt is worth its time
  std::vector<RnrCompletion> completions;  // of the requester, in order; the rest never came
  std::chrono::nanoseconds limit{0};       // how long it waited for each
  std::optional<uint64_t> naks;            // RNR NAKs received; none: the device does not count
  // Of the responder.
  uint64_t received = 0;  // receives that completed well
  std::string failed;     // status of a receive that did not; empty: none
  std::string state;      // of its queue pair, afterwards
  std::string data;       // in its memory: "all", "none", "part"
};

// Both sides call it with the same kind; of the responder's outcome only `came` is set. Gives up
// the scenarios behind this one where the completions did not come.
Expected<RnrOutcome> RunOutOfReceives(Stage& stage, const RnrKind& kind);

// Time until RNR_RETRY_EXC_ERR, the first completion that is no success; none: it never came.
std::optional<int64_t> TimeToError(const RnrOutcome& outcome);

// What is wrong with the completions where the first `good` succeed, the next gets
// RNR_RETRY_EXC_ERR and the rest WR_FLUSH_ERR, all in the order of posting. Empty: nothing.
std::string WrongCompletions(const RnrOutcome& outcome, uint32_t good, uint32_t sends);

// How long a completion may take that needs `waits` waits: it ends below a step's time, since the
// other side is at a barrier meanwhile.
std::chrono::nanoseconds RnrLimit(const Stage& stage, uint32_t timer_code, uint32_t waits);

// RNR NAKs received since `counters` were read first; none: the device does not count them.
std::optional<uint64_t> NaksOf(const DeviceCounters& counters);
inline constexpr std::string_view kNaksReceived = "rcvd_rnr_err";

// "1.312 ms".
std::string MillisecondsText(int64_t ns);

// The identity of a result: a SEND, busy polling.
Point RnrPoint(const Stage& stage, uint32_t timer_code, uint32_t in_flight, std::string variant);

// A queue pair with one slot to send from and one for all that arrives, not yet connected.
Expected<FreshQp*> MakeRnrQp(Stage& stage, uint32_t timer_code, uint32_t rnr_retry);
// Polls for so long, with no receive there: a device that makes its progress in polls answers what
// comes meanwhile. Empty, or what is wrong: a completion.
Expected<std::string> StayUnready(FreshQp& qp, std::chrono::nanoseconds time);
int PostRnrReceive(Stage& stage, FreshQp& qp, uint64_t number);
int PostRnrSend(Stage& stage, FreshQp& qp, ibv_wr_opcode opcode, uint64_t number);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_RNR_ATTEMPT_H_
