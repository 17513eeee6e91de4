// What a thread has used so far: CPU time, context switches, page faults. Read before and after the
// measured part; the difference belongs to it.
//
//   const ThreadUsage before = ThreadUsage::Now();
//   …
//   const ThreadUsage used = ThreadUsage::Now() - before;
//
// Now() is about the calling thread and costs a few system calls: not for the inside of a loop.
#ifndef VERBSCOPE_CORE_HOST_THREAD_USAGE_H_
#define VERBSCOPE_CORE_HOST_THREAD_USAGE_H_

#include <cstdint>

namespace verbscope {

struct ThreadUsage {
  int64_t cpu_ns = 0;  // CLOCK_THREAD_CPUTIME_ID: user and system
  // RUSAGE_THREAD; a voluntary switch is a sleep, an involuntary one a loss of the CPU.
  int64_t voluntary_switches = 0;
  int64_t involuntary_switches = 0;
  int64_t minor_faults = 0;
  int64_t major_faults = 0;
  int64_t run_delay_ns = -1;  // ready to run, and not running; -1: the kernel does not count it

  // Of the calling thread since it started. What the system does not tell stays 0.
  static ThreadUsage Now();

  friend ThreadUsage operator-(const ThreadUsage& later, const ThreadUsage& earlier);
  friend bool operator==(const ThreadUsage&, const ThreadUsage&) = default;
};

// CPU time of this process, all threads, in ns since it started.
int64_t ProcessCpuNs();

// Most memory this process has had resident at one time, in bytes; 0 when the system does not say.
uint64_t PeakRssBytes();

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_HOST_THREAD_USAGE_H_
