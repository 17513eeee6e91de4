// The arithmetic of receiver not ready: one wait from the times until the error, and what it says
// of a device. Pure functions.
#ifndef VERBSCOPE_CORE_SCENARIO_RNR_TIMERS_H_
#define VERBSCOPE_CORE_SCENARIO_RNR_TIMERS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/record/record.h"

namespace verbscope {

// One wait in ns: the slope of the line through the shortest time of each rnr_retry (least
// squares). None for fewer than two of them. A single wait cannot be seen from a sender: every time
// also holds the way to the receiver and back, which the slope leaves out.
std::optional<int64_t> OneWaitNs(std::span<const RnrAttempt> attempts);

// Fills measured_ns and ratio from the attempts.
void Conclude(RnrMetrics& rnr);

// The first attempt that ended before its waits can have been over, each of them shorter than its
// timer by `short_ns`.
std::optional<RnrAttempt> TooEarly(std::span<const RnrAttempt> attempts, int64_t short_ns);

// Judges the waits of one timer on a device of this kind. Fills everything but the name.
void JudgeWaits(std::string_view device_kind, const RnrMetrics& rnr, CheckRow& row);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_RNR_TIMERS_H_
