// What the host does to a thread that never rests, with no RDMA at all: the floor under every tail
// that is measured on it. The thread reads the clock again and again; where two readings lie far
// apart, it did not run.
//
// Blocks its thread, which uses a CPU all the while. One thread.
#ifndef VERBSCOPE_CORE_SESSION_JITTER_FLOOR_H_
#define VERBSCOPE_CORE_SESSION_JITTER_FLOOR_H_

#include <algorithm>
#include <cstdint>

#include "core/clock/clock.h"
#include "core/record/record.h"

namespace verbscope {

// In ticks of the clock that is read.
struct GapLimits {
  uint64_t over_1us = 0;
  uint64_t over_10us = 0;
  uint64_t over_100us = 0;
};

struct GapCounts {
  uint64_t watched = 0;  // ticks
  uint64_t max = 0;      // ticks
  uint64_t lost = 0;     // ticks, in gaps over 1 us
  uint64_t over_1us = 0;
  uint64_t over_10us = 0;
  uint64_t over_100us = 0;
};

// Watches for `ticks` more and adds to `counts`.
template <class TickClock>
void WatchGaps(const GapLimits& limits, uint64_t ticks, GapCounts& counts) {
  const uint64_t begun = TickClock::Now();
  uint64_t previous = begun;
  while (previous - begun < ticks) {
    const uint64_t now = TickClock::Now();
    const uint64_t gap = now - previous;
    previous = now;
    counts.max = std::max(counts.max, gap);
    if (gap <= limits.over_1us) continue;
    counts.lost += gap;
    ++counts.over_1us;
    counts.over_10us += gap > limits.over_10us ? 1 : 0;
    counts.over_100us += gap > limits.over_100us ? 1 : 0;
  }
  counts.watched += previous - begun;
}

JitterFloor MakeJitterFloor(const GapCounts& counts, const TickScale& scale);

// About `ns` on the calling thread's CPU. `interrupted` is asked every few tens of milliseconds.
template <class Interrupted>
JitterFloor MeasureJitterFloor(const Clock& clock, int64_t ns, Interrupted interrupted) {
  constexpr uint64_t kSliceNs = 20'000'000;
  const TickScale scale = clock.scale();
  const GapLimits limits{.over_1us = scale.Ticks(1'000),
                         .over_10us = scale.Ticks(10'000),
                         .over_100us = scale.Ticks(100'000)};
  GapCounts counts;
  while (scale.Nanoseconds(counts.watched) < ns && !interrupted()) {
    clock.Dispatch([&]<class TickClock>(TickClock) {
      WatchGaps<TickClock>(limits, scale.Ticks(kSliceNs), counts);
    });
  }
  return MakeJitterFloor(counts, scale);
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_JITTER_FLOOR_H_
