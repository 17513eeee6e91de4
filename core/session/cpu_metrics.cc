#include "core/session/cpu_metrics.h"

#include <sched.h>

#include <algorithm>

namespace verbscope {
namespace {

double Seconds(int64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

CpuMetrics CpuAccount::Close(const LoopOutcome& outcome, uint64_t messages) const {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  const ThreadUsage usage = ThreadUsage::Now() - thread_;
  CpuMetrics cpu;
  cpu.cpu_s = Seconds(usage.cpu_ns);
  if (seconds > 0) cpu.utilization = std::min(1.0, cpu.cpu_s / seconds);
  if (messages > 0) cpu.us_per_message = cpu.cpu_s * 1e6 / static_cast<double>(messages);
  cpu.voluntary_switches = static_cast<uint64_t>(usage.voluntary_switches);
  cpu.involuntary_switches = static_cast<uint64_t>(usage.involuntary_switches);
  cpu.events = outcome.wait.events;
  cpu.empty_wakeups = outcome.wait.empty_wakeups;
  cpu.lost_wakeups = outcome.wait.lost_wakeups;
  if (outcome.wait.events > 0) {
    const uint64_t taken = outcome.completions > 0 ? outcome.completions : outcome.received;
    cpu.completions_per_event =
        static_cast<double>(taken) / static_cast<double>(outcome.wait.events);
  }
  cpu.process_cpu_s = Seconds(ProcessCpuNs() - process_ns_);
  if (usage.run_delay_ns >= 0) cpu.run_delay_s = Seconds(usage.run_delay_ns);
  if (const int core = ::sched_getcpu(); core >= 0) cpu.core = core;
  return cpu;
}

}  // namespace verbscope
