#include "core/host/thread_usage.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "core/base/file_descriptor.h"
#include "core/host/system_text.h"

namespace verbscope {

namespace {

// "time on CPU, time waiting on a run queue, time slices" (Documentation/scheduler/sched-stats).
// Read without a stream: what it costs ends in the account.
int64_t RunDelayNs() {
  const FileDescriptor file(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC));
  char text[96];
  const ssize_t length = file ? ::read(file.get(), text, sizeof(text) - 1) : -1;
  if (length <= 0) return -1;
  text[length] = '\0';
  int64_t on_cpu_ns = 0;
  int64_t waited_ns = 0;
  if (std::sscanf(text, "%" SCNd64 " %" SCNd64, &on_cpu_ns, &waited_ns) != 2) return -1;
  return waited_ns;
}

}  // namespace

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
  now.run_delay_ns = RunDelayNs();
  return now;
}

int64_t ProcessCpuNs() {
  timespec time = {};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return 0;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

ThreadUsage operator-(const ThreadUsage& later, const ThreadUsage& earlier) {
  return {.cpu_ns = later.cpu_ns - earlier.cpu_ns,
          .voluntary_switches = later.voluntary_switches - earlier.voluntary_switches,
          .involuntary_switches = later.involuntary_switches - earlier.involuntary_switches,
          .minor_faults = later.minor_faults - earlier.minor_faults,
          .major_faults = later.major_faults - earlier.major_faults,
          .run_delay_ns = later.run_delay_ns < 0 || earlier.run_delay_ns < 0
                              ? -1
                              : later.run_delay_ns - earlier.run_delay_ns};
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
