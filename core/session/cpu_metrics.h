// What a measured phase cost: CPU time of its thread and of the process, switches, wake-ups.
//
//   const CpuAccount account;  // on the measuring thread
//   … the phase …
//   result.metrics.cpu = account.Close(outcome, messages);
//
// One thread; a few system calls at both ends.
#ifndef VERBSCOPE_CORE_SESSION_CPU_METRICS_H_
#define VERBSCOPE_CORE_SESSION_CPU_METRICS_H_

#include <chrono>
#include <cstdint>

#include "core/host/thread_usage.h"
#include "core/loops/loop.h"
#include "core/record/record.h"

namespace verbscope {

class CpuAccount {
 public:
  CpuAccount()
      : begun_(std::chrono::steady_clock::now()),
        process_ns_(ProcessCpuNs()),
        thread_(ThreadUsage::Now()) {}

  // `messages` that the CPU time was spent on. The utilization is of the time since construction:
  // the first and the last message of a side may lie close together.
  CpuMetrics Close(const LoopOutcome& outcome, uint64_t messages) const;

 private:
  std::chrono::steady_clock::time_point begun_;
  int64_t process_ns_;
  ThreadUsage thread_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_CPU_METRICS_H_
