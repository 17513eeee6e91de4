// The two clocks of the measuring loops, with one static interface, so that a loop takes either as
// a template parameter and neither costs a branch: `static uint64_t Now()`. Which one to use, and
// what a tick of it is, says core/clock/clock.h.
//
// Both may be read by any thread. A difference of two reads has a meaning; a single one has none.
#ifndef VERBSCOPE_CORE_CLOCK_CPU_COUNTER_H_
#define VERBSCOPE_CORE_CLOCK_CPU_COUNTER_H_

#include <time.h>

#include <cstdint>

namespace verbscope {

// CLOCK_MONOTONIC_RAW in ns: the kernel's clock without NTP's adjustments, the reference of all
// calibration. Some 20 ns to 50 ns through the vDSO; a system call on a few hosts.
struct PosixClock {
  static uint64_t Now() {
    timespec now{};
    // Cannot fail: the clock exists since Linux 2.6.28 and the pointer is ours.
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }
};

// The CPU's constant-rate counter in ticks: TSC on x86-64, the generic timer on arm64.
//
// A read must not move before the poll that saw the completion, or the latency would end before the
// message arrived. The compiler is held back by "memory"; the CPU as follows.
struct CpuCounter {
#if defined(__x86_64__)
  static constexpr bool kExists = true;
  static uint64_t Now() {
    uint32_t low = 0;
    uint32_t high = 0;
    // rdtsc alone executes as soon as it is decoded, under a poll loop's predicted exit even before
    // the load of the completion. lfence lets nothing behind it start until all before it,
    // loads included, is complete (on AMD as Linux configures it). rdtscp gives the same order but
    // also writes ECX, needs a CPUID bit of its own and costs more. Nothing is needed behind the
    // read: a later doorbell write leaves the core in program order, after the read has executed.
    asm volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high)::"memory");
    return uint64_t{high} << 32 | low;
  }
#elif defined(__aarch64__)
  static constexpr bool kExists = true;
  static uint64_t Now() {
    uint64_t ticks = 0;
    // The architecture lets the counter be read early by speculation; isb forbids it.
    asm volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks)::"memory");
    return ticks;
  }
#else
  // Never chosen by Clock; compiles so that loops need no conditions of their own.
  static constexpr bool kExists = false;
  static uint64_t Now() { return PosixClock::Now(); }
#endif
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CLOCK_CPU_COUNTER_H_
