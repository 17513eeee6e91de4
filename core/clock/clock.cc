#include "core/clock/clock.h"

#include <fmt/format.h>
#include <time.h>

#include <cmath>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace verbscope {
namespace {

// Two of these and the rest stay below 20 ms, with room for a late wake-up. A bracket of 100 ns is
// 17 ppm of one.
constexpr uint64_t kHalfNs = 6'000'000;
constexpr int kTries = 32;

Reading ReadBoth() { return TightestReading(CpuCounter::Now, PosixClock::Now, kTries); }

// What the CPU says about its counter. The answer comes from the CPU itself: the kernel's flags in
// /proc/cpuinfo are text about the same bit.
StartReadings DescribeCounter() {
  StartReadings readings;
#if defined(__x86_64__)
  readings.counter = ClockSource::kTsc;
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantTsc = 1u << 8;  // EDX
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  readings.invariant =
      __get_cpuid(kPowerManagement, &eax, &ebx, &ecx, &edx) != 0 && (edx & kInvariantTsc) != 0;
#elif defined(__aarch64__)
  readings.counter = ClockSource::kCntvct;
  readings.invariant = true;  // the architecture's generic timer is a system counter of fixed rate
#endif
  return readings;
}

void SpinFor(uint64_t ns) {
  const uint64_t begin = PosixClock::Now();
  while (PosixClock::Now() - begin < ns) {
  }
}

void SleepFor(uint64_t ns) {
  timespec left{.tv_sec = 0, .tv_nsec = static_cast<int64_t>(ns)};
  while (nanosleep(&left, &left) != 0) {  // only a signal ends it early
  }
}

template <class Counter>
void MeasureReads(ClockInfo& info) {
  const double ns_per_tick = 1e9 / info.hz;
  info.resolution_ns = static_cast<double>(SmallestStep(Counter::Now)) * ns_per_tick;
  info.overhead_ns = MedianCost(Counter::Now) * ns_per_tick;
}

}  // namespace

Status CheckDrift(const ClockInfo& info) {
  if (info.source == ClockSource::kClockGettime) return {};
  if (info.drift_ppm && std::abs(*info.drift_ppm) <= kRefusePpm) return {};
  Error error;
  error.error_class = ErrorClass::kInconclusive;
  error.message =
      info.drift_ppm
          ? fmt::format("clock {} drifted by {:.0f} ppm during the run, more than {:.0f}",
                        Name(info.source), *info.drift_ppm, kRefusePpm)
          : fmt::format("clock {} went back or stood still during the run", Name(info.source));
  error.cause = info.invariant ? "the counter changed its rate or value, as after a migration of "
                                 "this virtual machine or a suspend"
                               : "the CPU does not promise a constant rate of this counter";
  error.next_step = "run again; if it persists, use a host with an invariant counter";
  return Fail(std::move(error));
}

Clock Clock::Calibrate() {
  Clock clock;
  StartReadings readings = DescribeCounter();
  if (readings.counter != ClockSource::kClockGettime) {
    // One half busy, one half asleep: a counter that follows the core's frequency or stops when the
    // core idles runs at two rates here, and is found out.
    readings.begin = ReadBoth();
    SpinFor(kHalfNs);
    readings.middle = ReadBoth();
    SleepFor(kHalfNs);
    readings.end = ReadBoth();
  }
  const ClockChoice choice = ChooseClock(readings);
  clock.begin_ = readings.begin;
  clock.info_.source = choice.source;
  clock.info_.invariant = choice.invariant;
  clock.info_.hz = choice.hz;
  if (!choice.notice.empty()) clock.info_.notices.push_back(choice.notice);
  clock.start_notices_ = clock.info_.notices.size();
  if (clock.uses_cpu_counter()) {
    MeasureReads<CpuCounter>(clock.info_);
  } else {
    MeasureReads<PosixClock>(clock.info_);
  }
  return clock;
}

const ClockInfo& Clock::Finish() {
  if (!uses_cpu_counter()) return info_;
  const Drift drift = MeasureDrift(info_.hz, begin_, ReadBoth());
  info_.drift_ppm = drift.ppm;
  info_.notices.resize(start_notices_);
  if (!drift.notice.empty()) info_.notices.push_back(drift.notice);
  return info_;
}

}  // namespace verbscope
