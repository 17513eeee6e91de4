// What the steps of cq-overrun are made of: requests whose completions are left in a CQ, what then
// comes out of it, and what that is called.
//
// The session's thread.
#ifndef VERBSCOPE_CORE_SCENARIO_CQ_OVERRUN_STEPS_H_
#define VERBSCOPE_CORE_SCENARIO_CQ_OVERRUN_STEPS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "core/record/record.h"
#include "core/scenario/scenario.h"

namespace verbscope {

// How long an event may take that is due, and how long after it completions may still fall into the
// CQ: nobody polls meanwhile.
inline constexpr std::chrono::nanoseconds kEventLimit = std::chrono::seconds(1);
inline constexpr std::chrono::nanoseconds kSettle = std::chrono::milliseconds(50);

// Completions as they came out of a CQ.
struct Overrun {
  OverrunMetrics metrics;
  bool oldest_in_order = true;  // what came with SUCCESS are the first requests, in order
  std::string strange = {};     // a completion of no request of ours
};

// Whether the CQ of queue pair 0 overran, after `outstanding` requests of kind `kind` numbered from
// 0: the event, the state of the queue pair, then everything that can be polled.
Expected<Overrun> TakeOverrun(Stage& stage, QpSet& set, bool receives, uint64_t outstanding);

// The sentence that is expected and observed: without numbers, so that a table of devices can hold
// it. `cq`: with a word on whether the CQ goes on, where it was tried.
std::string OverrunText(const Overrun& overrun);
// "31 of 47 delivered, 16 lost, CQ of 31 entries".
std::string NumbersText(const OverrunMetrics& metrics);

// Takes what still comes of `outstanding` requests, until nothing has come for a while, so that
// what is missing afterwards is lost. For after a completion was wrong; only counts.
Status TakeRest(Stage& stage, QpSet& set, OverrunMetrics& metrics);

// Signalled WRITEs of queue pair 0, never more than the CQ has room for: when it is full of what
// may come, posting pauses until a completion was taken. `wrong` is empty when each came, in order.
struct Paused {
  OverrunMetrics metrics;
  uint64_t pauses = 0;
  std::string wrong = {};
};
Expected<Paused> WriteWithPauses(Stage& stage, QpSet& set, uint64_t messages);

void KeepOverrun(Stage& stage, std::string op, uint32_t qps, std::string variant,
                 OverrunMetrics metrics);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_CQ_OVERRUN_STEPS_H_
