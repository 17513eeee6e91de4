#include "core/host/thread_usage.h"

#include <sys/resource.h>
#include <time.h>

#include <fstream>
#include <iterator>
#include <string>

#include "core/host/system_text.h"

namespace verbscope {

ThreadUsage ThreadUsage::Now() {
  ThreadUsage now;
  timespec time = {};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0) {
    now.cpu_ns = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }
  rusage usage = {};
  if (getrusage(RUSAGE_THREAD, &usage) == 0) {
    now.voluntary_switches = usage.ru_nvcsw;
    now.involuntary_switches = usage.ru_nivcsw;
    now.minor_faults = usage.ru_minflt;
    now.major_faults = usage.ru_majflt;
  }
  return now;
}

ThreadUsage operator-(const ThreadUsage& later, const ThreadUsage& earlier) {
  return {.cpu_ns = later.cpu_ns - earlier.cpu_ns,
          .voluntary_switches = later.voluntary_switches - earlier.voluntary_switches,
          .involuntary_switches = later.involuntary_switches - earlier.involuntary_switches,
          .minor_faults = later.minor_faults - earlier.minor_faults,
          .major_faults = later.major_faults - earlier.major_faults};
}

uint64_t PeakRssBytes() {
  // getrusage's ru_maxrss survives exec, so it may be the launching process's peak; VmHWM is ours.
  std::ifstream file("/proc/self/status");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (const auto peak = StatusBytes(text, "VmHWM")) return *peak;
  rusage usage = {};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;  // kB on Linux
}

}  // namespace verbscope
