#include "core/host/affinity.h"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

namespace verbscope {
namespace {

// More than any kernel supports (CONFIG_NR_CPUS is at most 8192), in sets of plain cpu_set_t, so
// that no macro needs a size computed at run time.
constexpr size_t kSets = 16;
constexpr int kMaxCpus = static_cast<int>(kSets) * CPU_SETSIZE;

struct CpuMask {
  cpu_set_t sets[kSets] = {};

  bool Has(int cpu) const {
    return CPU_ISSET(static_cast<size_t>(cpu % CPU_SETSIZE), &sets[cpu / CPU_SETSIZE]);
  }
  void Add(int cpu) { CPU_SET(static_cast<size_t>(cpu % CPU_SETSIZE), &sets[cpu / CPU_SETSIZE]); }
};

bool Get(CpuMask& mask) {
  mask = {};
  return sched_getaffinity(0, sizeof(mask.sets), mask.sets) == 0;
}

bool Set(const CpuMask& mask) { return sched_setaffinity(0, sizeof(mask.sets), mask.sets) == 0; }

std::vector<int> CpusOf(const CpuMask& mask) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (mask.Has(cpu)) cpus.push_back(cpu);
  }
  return cpus;
}

// What the thread could be pinned to: the kernel cuts a mask of all CPUs down to the allowed ones.
// Leaves the thread with `before`.
std::vector<int> AllowedCpus(const CpuMask& before) {
  CpuMask mask;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) mask.Add(cpu);
  const bool known = Set(mask) && Get(mask);
  (void)Set(before);
  return CpusOf(known ? mask : before);
}

}  // namespace

std::vector<int> ThreadCpus() {
  CpuMask mask;
  return Get(mask) ? CpusOf(mask) : std::vector<int>();
}

AffinityScope::~AffinityScope() {
  // It ran there before, so this fails only if the CPUs went away meanwhile; then any will do.
  (void)PinThread(cpus_).has_value();
}

int UsableCpuCount() { return std::max(1, static_cast<int>(ThreadCpus().size())); }

Status PinThread(const std::vector<int>& cpus) {
  if (cpus.empty()) return {};
  std::vector<int> asked = cpus;
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  const std::string parameter = "cpus=" + CpuListText(asked);

  CpuMask before;
  if (!Get(before)) {
    return Fail(CallError(ErrorClass::kSetup, "sched_getaffinity", parameter, errno));
  }
  int errno_value = EINVAL;
  if (asked.front() >= 0 && asked.back() < kMaxCpus) {
    CpuMask wanted;
    for (const int cpu : asked) wanted.Add(cpu);
    if (Set(wanted)) {
      if (ThreadCpus() == asked) return {};
      (void)Set(before);
    } else {
      errno_value = errno;
    }
  }
  Error error = CallError(ErrorClass::kSetup, "sched_setaffinity", parameter, errno_value);
  const std::string allowed = CpuListText(AllowedCpus(before));
  error.cause = "this process may run on CPUs " + allowed;
  error.next_step = fmt::format("choose CPUs of {} by --cpu", allowed);
  return Fail(std::move(error));
}

std::string CpuListText(const std::vector<int>& cpus) {
  std::string text;
  for (size_t first = 0; first < cpus.size();) {
    size_t last = first;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += first == last ? fmt::format("{}", cpus[first])
                          : fmt::format("{}-{}", cpus[first], cpus[last]);
    first = last + 1;
  }
  return text.empty() ? "none" : text;
}

}  // namespace verbscope
