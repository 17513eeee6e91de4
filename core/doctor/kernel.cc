// The kernel and what is around it: background work, clock, virtualization, versions, environment.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/text_file.h"
#include "core/doctor/families.h"

namespace verbscope {
namespace {

constexpr RowText kBalancing = {
    .name = "numa-balancing",
    .good = "0",
    .symptom = "sporadic stalls: pages are unmapped to see who uses them",
    .fix = "sysctl -w kernel.numa_balancing=0"};
constexpr RowText kHugePages = {
    .name = "transparent-hugepages",
    .good = "madvise or never",
    .symptom = "sporadic stalls while the kernel compacts memory",
    .fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"};
constexpr RowText kClock = {
    .name = "clocksource",
    .good = "the CPU's own counter (tsc, arch_sys_counter), or the hypervisor's page of it",
    .symptom = "a clock read costs a microsecond: ns figures of any program mean little",
    .fix =
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource; the "
        "kernel log says why it was given up"};
constexpr RowText kTsc = {
    .name = "invariant-tsc",
    .good = "constant_tsc and nonstop_tsc",
    .symptom = "the counter changes its rate or stops: verbscope takes the slower system clock",
    .fix = "virtual machine: give the guest the invariant TSC (CPU host, +invtsc)"};
constexpr RowText kVirtual = {.name = "virtual-machine", .good = "no, or known"};
constexpr RowText kSteal = {
    .name = "steal-time",
    .good = "under 1 % of the time since boot",
    .symptom = "tails and gaps that are the hypervisor's, not the network's",
    .fix = "pin the guest's CPUs, or give it CPUs of its own"};
constexpr RowText kKernel = {.name = "kernel", .good = "the same on both sides"};
constexpr RowText kRdmaCore = {.name = "rdma-core", .good = "the same on both sides"};
constexpr RowText kEnvironment = {
    .name = "environment",
    .good = "no MLX5_*, MLX4_*, RDMAV_* or IBV_* variable, or the same in runs that are compared",
    .symptom = "tuning of the library that no result shows",
    .fix = "unset them, or set the same on both hosts"};

void CheckMemoryWork(const HostTree& tree, PreflightRows& rows) {
  Place place = {.file = "/proc/sys/kernel/numa_balancing"};
  const size_t nodes = CpusOf(tree.Text("/sys/devices/system/node/online").value_or("")).size();
  if (const auto value = NumberOrSkip(tree, kBalancing, place, rows)) {
    // With one node there is nothing to balance.
    rows.OkIf(*value == 0 || nodes <= 1, kBalancing, place,
              nodes <= 1 ? fmt::format("{}, and one node", *value) : fmt::format("{}", *value));
  }
  place.file = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (const auto text = TextOrSkip(tree, kHugePages, place, rows)) {
    const size_t open = text->find('[');
    const size_t close = text->find(']');
    if (open == text->npos || close == text->npos || close < open) {
      rows.Skip(kHugePages, place, "no choice in: " + text->substr(0, 40));
    } else {
      const std::string choice = text->substr(open + 1, close - open - 1);
      rows.OkIf(choice != "always", kHugePages, place, choice);
    }
  }
}

void CheckClock(const HostTree& tree, const std::vector<std::string>& flags, PreflightRows& rows) {
  const Place place = {.file = "/sys/devices/system/clocksource/clocksource0/current_clocksource"};
  if (const auto source = TextOrSkip(tree, kClock, place, rows)) {
    constexpr std::array<std::string_view, 5> kGood = {"tsc", "arch_sys_counter", "kvm-clock",
                                                       "hyperv_clocksource_tsc_page", "timebase"};
    rows.OkIf(std::ranges::count(kGood, *source) > 0, kClock, place, *source);
  }
  const Place cpuinfo = {.file = "/proc/cpuinfo"};
  if (flags.empty()) return rows.Skip(kTsc, cpuinfo, "no flags of an x86 processor");
  std::vector<std::string> missing;
  for (const char* flag : {"constant_tsc", "nonstop_tsc"}) {
    if (std::ranges::count(flags, flag) == 0) missing.push_back(flag);
  }
  rows.OkIf(missing.empty(), kTsc, cpuinfo,
            missing.empty() ? "yes" : fmt::format("without {}", fmt::join(missing, " and ")));
}

// Steal is the eighth number of the first line of /proc/stat (proc(5)).
void CheckVirtual(const HostTree& tree, const std::vector<std::string>& flags,
                  PreflightRows& rows) {
  const bool guest = std::ranges::count(flags, "hypervisor") > 0;
  const std::string product = tree.Text("/sys/class/dmi/id/product_name").value_or("");
  rows.Ok(kVirtual, {.file = "/proc/cpuinfo"},
          guest ? "yes" + (product.empty() ? "" : ": " + product) : "no sign of one");
  const Place place = {.file = "/proc/stat"};
  const auto text = TextOrSkip(tree, kSteal, place, rows);
  if (!text) return;
  const std::vector<std::string> words = WordsOf(LinesOf(*text).front());
  double total = 0;
  double steal = 0;
  for (size_t i = 1; i < words.size() && i <= 8; ++i) {
    const double ticks = LeadingNumber(words[i]).value_or(0);
    total += ticks;
    if (i == 8) steal = ticks;
  }
  if (!(total > 0) || words.size() < 9) return rows.Skip(kSteal, place, "no counts of the CPUs");
  const double percent = 100 * steal / total;
  rows.OkIf(percent < 1, kSteal, place, fmt::format("{:.1f} %", percent));
}

// libibverbs.so.1.14.44.0 is of rdma-core 44: the third number is the release.
std::string RdmaCoreVersion(const HostTree& tree, std::string& file) {
  constexpr std::string_view kPrefix = "libibverbs.so.1.";
  for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                             "/usr/lib64", "/usr/local/lib", "/usr/lib"}) {
    for (const std::string& name : tree.List(folder)) {
      if (!name.starts_with(kPrefix)) continue;
      const size_t dot = name.find('.', kPrefix.size());
      if (dot == name.npos) continue;
      file = fmt::format("{}/{}", folder, name);
      return name.substr(dot + 1);
    }
  }
  return {};
}

void CheckVersions(const HostTree& tree, PreflightRows& rows) {
  const Place kernel = {.file = "/proc/sys/kernel/osrelease"};
  if (const auto release = TextOrSkip(tree, kKernel, kernel, rows)) {
    rows.Ok(kKernel, kernel, *release);
  }
  Place library;
  const std::string version = RdmaCoreVersion(tree, library.file);
  if (version.empty()) return rows.Skip(kRdmaCore, library, "libibverbs is in no usual folder");
  rows.Ok(kRdmaCore, library, version);
}

// /proc/self/environ: NAME=VALUE, each ended by a zero byte.
void CheckEnvironment(const HostTree& tree, PreflightRows& rows) {
  const Place place = {.file = "/proc/self/environ"};
  auto text = tree.Text(place.file);
  if (!text) return rows.Skip(kEnvironment, place, tree.Why(place.file));
  std::replace(text->begin(), text->end(), '\0', '\n');
  std::vector<std::string> found;
  for (const std::string& line : LinesOf(*text)) {
    for (const char* prefix : {"MLX5_", "MLX4_", "RDMAV_", "IBV_"}) {
      if (line.starts_with(prefix)) found.push_back(line.substr(0, 80));
    }
  }
  rows.OkIf(found.empty(), kEnvironment, place,
            found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", ")));
}

}  // namespace

void CheckKernel(const HostTree& tree, PreflightRows& rows) {
  const std::string cpuinfo = tree.Text("/proc/cpuinfo").value_or("");
  std::vector<std::string> flags;
  for (const std::string& line : LinesOf(cpuinfo)) {
    if (!line.starts_with("flags")) continue;
    flags = WordsOf(line);
    break;  // of the first CPU
  }
  CheckEnvironment(tree, rows);
  CheckMemoryWork(tree, rows);
  CheckClock(tree, flags, rows);
  CheckVirtual(tree, flags, rows);
  CheckVersions(tree, rows);
}

}  // namespace verbscope
