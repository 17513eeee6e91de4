// When the messages of an open loop are due: the gaps between them in ticks, made before the loop,
// which goes round the table.
//
// Plain data, any thread.
#ifndef VERBSCOPE_CORE_LOOPS_SCHEDULE_H_
#define VERBSCOPE_CORE_LOOPS_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "core/clock/tick_scale.h"
#include "core/plan/plan.h"

namespace verbscope {

// A power of two. A Poisson stream repeats after so many gaps, which no queue remembers.
inline constexpr size_t kScheduleGaps = 4096;

// kScheduleGaps gaps whose sum is kScheduleGaps / rate_per_s, to a tick: equal ones to a tick, or
// exponentially distributed ones from `seed`.
std::vector<uint64_t> MakeGaps(double rate_per_s, Arrival arrival, const TickScale& scale,
                               uint64_t seed);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_SCHEDULE_H_
