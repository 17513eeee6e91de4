// What `rnr-test` tries, as far as it decides how long that takes: which timers, how often, against
// how many receives. One place for the steps that do it (core/scenario) and for the plan that must
// know the time before the run.
//
// An RNR NAK with a timer code makes the sender wait; code 0 is the longest, not the shortest.
// Pure functions of the plan; any thread.
#ifndef VERBSCOPE_CORE_PLAN_RNR_PLAN_H_
#define VERBSCOPE_CORE_PLAN_RNR_PLAN_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace verbscope {

inline constexpr std::string_view kRnrTest = "rnr-test";
inline constexpr uint32_t kRnrTimerCodes = 32;

// "1,12-14", or "all": in the order given, without duplicates, each 0 … 31. kUsage otherwise.
Expected<std::vector<uint32_t>> ParseTimerCodes(std::string_view text);

// The codes of the plan, or those of a run that asks for none.
std::vector<uint32_t> TimerCodesOf(const Plan& plan);

// How one timer is measured: the time until the error with each of these rnr_retry, each so often.
// A wait is the slope; with long timers two points are enough.
struct TimerSweep {
  std::vector<uint32_t> retries;  // ascending, 1 … 6, two or more
  uint32_t repeats = 1;
};
TimerSweep SweepOf(uint32_t timer_code, bool quick);

inline constexpr uint32_t kLastFiniteRetry = 6;  // 7 is without limit

// The time until the error with rnr_retry 0 … 6, and so many requests behind the failing one.
inline constexpr uint32_t kExhaustionSends = 4;

// Recovery: in every round so many messages meet no receive until the receiver is late by
// RecoveryDelayNs. The first round outlasts more waits than any finite rnr_retry allows; the others
// are spread over the length of one wait.
inline constexpr uint32_t kRecoverySends = 4;
uint64_t RecoveryRounds(const Plan& plan);
int64_t RecoveryDelayNs(const Plan& plan, uint64_t round);

// Starvation with an end: more messages than receives, and one retry.
inline constexpr uint32_t kStarvationSends = 32;
inline constexpr uint32_t kStarvationReceives = 16;

// Starvation without: so many in flight, and receives that come in batches once the last batch is
// used up. Each batch but the first costs a wait.
inline constexpr uint32_t kStarvedInFlight = 32;
inline constexpr uint32_t kStarvedReceives = 8;
// The shortest and the longest timer of the plan's codes: one code or two.
std::vector<uint32_t> StarvedCodes(const Plan& plan);
uint32_t StarvedBatches(uint32_t timer_code, bool quick);

// Of the whole command, in ns: every wait as long as its timer and a coarse software timer more,
// every queue pair as slow as an emulated host makes it. It saturates.
int64_t RnrTestPlannedNs(const Plan& plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_RNR_PLAN_H_
