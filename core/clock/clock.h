// Clock: which clock this run measures with, what a tick of it is, and how good it is.
//
// Calibrate once at the start, before any measuring thread exists; it takes under 20 ms unless the
// machine is overloaded. Measuring threads copy a scale and read Counter::Now() themselves; after
// they have ended, Finish calibrates again over the whole run. One owner; info() and scale() may be
// called by any thread between the two calls.
//
// The frequency text of /proc/cpuinfo is never read: it states the core's frequency, not the
// counter's.
//
//   Clock clock = Clock::Calibrate();
//   clock.Dispatch([&](auto counter) { PingPong<decltype(counter)>(clock.scale(0.5)); });
//   record.clock = clock.Finish();
#ifndef VERBSCOPE_CORE_CLOCK_CLOCK_H_
#define VERBSCOPE_CORE_CLOCK_CLOCK_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/clock/calibration.h"
#include "core/clock/cpu_counter.h"
#include "core/clock/tick_scale.h"

namespace verbscope {

// The `clock` object of the document.
struct ClockInfo {
  ClockSource source = ClockSource::kClockGettime;
  // The source's rate does not depend on frequency and idle states. clock_gettime: always true.
  bool invariant = true;
  double hz = 1e9;
  // Rate over the whole run against the rate of the start, known after Finish. Always absent for
  // clock_gettime, which is the reference itself.
  std::optional<double> drift_ppm;
  double resolution_ns = 0;  // smallest non-zero difference of consecutive reads
  double overhead_ns = 0;    // cost of one read, median; never subtracted from results
  std::vector<std::string> notices;
};

// After Finish: fails (kInconclusive) if the counter's drift made the times wrong by more than
// kRefusePpm, or if it went back over the run.
Status CheckDrift(const ClockInfo& info);

class Clock {
 public:
  static Clock Calibrate();

  bool uses_cpu_counter() const { return info_.source != ClockSource::kClockGettime; }
  // From ticks of the chosen clock to ns, times `factor` (0.5 for half round trips).
  TickScale scale(double factor = 1) const { return TickScale(info_.hz, factor); }
  const ClockInfo& info() const { return info_; }

  // Calls fn(CpuCounter()) or fn(PosixClock()), whichever was chosen. Both must have one result
  // type.
  template <class Fn>
  auto Dispatch(Fn&& fn) const {
    return uses_cpu_counter() ? std::forward<Fn>(fn)(CpuCounter())
                              : std::forward<Fn>(fn)(PosixClock());
  }

  // End of the run: adds drift_ppm and perhaps a notice. Later calls measure again.
  const ClockInfo& Finish();

 private:
  Clock() = default;

  ClockInfo info_;
  Reading begin_;
  size_t start_notices_ = 0;  // those of Calibrate; Finish replaces what follows
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CLOCK_CLOCK_H_
