#include "core/session/jitter_floor.h"

namespace verbscope {

JitterFloor MakeJitterFloor(const GapCounts& counts, const TickScale& scale) {
  JitterFloor floor;
  floor.seconds = static_cast<double>(scale.Nanoseconds(counts.watched)) * 1e-9;
  floor.max_gap_ns = scale.Nanoseconds(counts.max);
  if (counts.watched == 0) return floor;
  const auto per_second = [&floor](uint64_t count) {
    return static_cast<double>(count) / floor.seconds;
  };
  floor.gaps_over_1us_per_s = per_second(counts.over_1us);
  floor.gaps_over_10us_per_s = per_second(counts.over_10us);
  floor.gaps_over_100us_per_s = per_second(counts.over_100us);
  floor.lost_share = static_cast<double>(counts.lost) / static_cast<double>(counts.watched);
  return floor;
}

}  // namespace verbscope
