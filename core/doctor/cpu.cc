// What makes a CPU slow to wake, slow to run, or somebody else's.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/doctor/families.h"

namespace verbscope {
namespace {

constexpr char kCpus[] = "/sys/devices/system/cpu";

constexpr RowText kGovernor = {
    .name = "governor",
    .good = "performance",
    .symptom = "results vary from run to run; slow first messages after a pause",
    .fix = "cpupower frequency-set -g performance"};
constexpr RowText kEpp = {
    .name = "energy-preference",
    .good = "performance",
    .symptom = "the CPU takes its time to reach full speed: longer wake-ups, varying results",
    .fix =
        "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/"
        "energy_performance_preference"};
constexpr RowText kTurbo = {.name = "turbo", .good = "the same in runs that are compared"};
constexpr RowText kIdle = {
    .name = "idle-states",
    .good = "none enabled that takes over 10 us to leave, or known",
    .symptom = "event mode: a tail as long as the deepest state's exit",
    .fix = "cpupower idle-set -D 10, or hold /dev/cpu_dma_latency open with 0 during the run"};
constexpr RowText kSmt = {.name = "smt", .good = "sibling of a measuring CPU idle"};
constexpr RowText kIsolation = {.name = "isolated-cpus",
                                .good = "the measuring CPU among them, or known"};
constexpr RowText kQuota = {
    .name = "cpu-quota",
    .good = "none, and never throttled",
    .symptom = "stalls of 10 to 100 ms while the process has used up its period",
    .fix = "container: no CPU limit, or whole CPUs with a static CPU manager; service: CPUQuota="};
constexpr RowText kIrqbalance = {
    .name = "irqbalance",
    .good = "not running, or the adapter's vectors banned",
    .symptom = "event mode: vectors move during a run, wake-ups get uneven",
    .fix = "systemctl stop irqbalance, or IRQBALANCE_BANNED_CPULIST in its settings"};

// "cpu0", "cpu17", not "cpufreq".
std::vector<std::string> CpuFolders(const HostTree& tree) {
  std::vector<std::string> folders;
  for (const std::string& name : tree.List(kCpus)) {
    if (name.size() > 3 && name.starts_with("cpu") &&
        name.find_first_not_of("0123456789", 3) == name.npos) {
      folders.push_back(fmt::format("{}/{}", kCpus, name));
    }
  }
  return folders;
}

// How many CPUs say what in their file; those without it are left out.
std::map<std::string, int> ValuesOf(const HostTree& tree, const char* file) {
  std::map<std::string, int> values;
  for (const std::string& folder : CpuFolders(tree)) {
    const auto value = tree.Text(fmt::format("{}/cpufreq/{}", folder, file));
    if (value && !value->empty()) ++values[*value];
  }
  return values;
}

// "performance", or "powersave on 3 CPUs, performance on 1".
std::string ValuesText(const std::map<std::string, int>& values) {
  if (values.size() == 1) return values.begin()->first;
  std::vector<std::string> parts;
  for (const auto& [value, cpus] : values) {
    parts.push_back(fmt::format("{} on {} CPU{}", value, cpus, cpus == 1 ? "" : "s"));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

void CheckPreference(const HostTree& tree, const RowText& row, const char* file, const char* none,
                     PreflightRows& rows) {
  const Place place = {.file = fmt::format("{}/cpu*/cpufreq/{}", kCpus, file)};
  const std::map<std::string, int> values = ValuesOf(tree, file);
  if (values.empty()) return rows.Skip(row, place, none);
  rows.OkIf(values.size() == 1 && values.contains("performance"), row, place, ValuesText(values));
}

void CheckTurbo(const HostTree& tree, PreflightRows& rows) {
  const std::string intel = fmt::format("{}/intel_pstate/no_turbo", kCpus);
  const std::string boost = fmt::format("{}/cpufreq/boost", kCpus);
  const bool inverted = tree.Exists(intel);
  const Place place = {.file = inverted ? intel : boost};
  const auto value = NumberOrSkip(tree, kTurbo, place, rows);
  if (value) rows.Ok(kTurbo, place, (*value != 0) != inverted ? "on" : "off");
}

void CheckIdle(const HostTree& tree, PreflightRows& rows) {
  constexpr int kLongExitUs = 10;
  const Place place = {.file = fmt::format("{}/cpu*/cpuidle/state*/latency", kCpus)};
  int longest = -1;
  std::string name;
  for (const std::string& cpu : CpuFolders(tree)) {
    for (const std::string& state : tree.List(cpu + "/cpuidle")) {
      const std::string folder = fmt::format("{}/cpuidle/{}", cpu, state);
      const auto latency = tree.Number(folder + "/latency");
      if (!latency || tree.Number(folder + "/disable").value_or(0) != 0 || *latency <= longest) {
        continue;
      }
      longest = *latency;
      name = tree.Text(folder + "/name").value_or(state);
    }
  }
  if (longest < 0) return rows.Skip(kIdle, place, "no idle states are shown (a virtual machine?)");
  rows.OkIf(longest <= kLongExitUs, kIdle, place,
            fmt::format("deepest enabled: {}, {} us to leave", name, longest));
}

void CheckLists(const HostTree& tree, PreflightRows& rows) {
  Place place = {.file = fmt::format("{}/smt/active", kCpus)};
  if (const auto smt = NumberOrSkip(tree, kSmt, place, rows)) {
    rows.Ok(kSmt, place, *smt != 0 ? "on: two threads share a core" : "off");
  }
  place.file = fmt::format("{}/isolated", kCpus);
  const auto isolated = tree.Text(place.file);  // empty: none
  if (!isolated) return rows.Skip(kIsolation, place, tree.Why(place.file));
  const std::string tickless = tree.Text(fmt::format("{}/nohz_full", kCpus)).value_or("");
  std::string value = isolated->empty() ? "none" : *isolated;
  if (!tickless.empty() && tickless != "(null)") value += ", without tick: " + tickless;
  rows.Ok(kIsolation, place, value);
}

// "max 100000" or "200000 100000": quota and period in us. A quota of any cgroup above holds too.
void CheckQuota(const HostTree& tree, PreflightRows& rows) {
  Place place = {.file = "/proc/self/cgroup"};
  std::string group;
  for (const std::string& line : LinesOf(tree.Text(place.file).value_or(""))) {
    if (line.starts_with("0::/")) group = line.substr(3);
  }
  if (group.empty()) return rows.Skip(kQuota, place, "no cgroup of version 2");
  // Inside a container the own cgroup may be the root of what is shown, and has the file.
  for (bool more = true; more;) {
    more = group.size() > 1;
    const std::string folder = "/sys/fs/cgroup" + (more ? group : "");
    const std::vector<std::string> words = WordsOf(tree.Text(folder + "/cpu.max").value_or(""));
    int throttled = 0;
    for (const std::string& line : LinesOf(tree.Text(folder + "/cpu.stat").value_or(""))) {
      const std::vector<std::string> pair = WordsOf(line);
      if (pair.size() == 2 && pair[0] == "nr_throttled") {
        throttled = static_cast<int>(std::min(LeadingNumber(pair[1]).value_or(0), 1e9));
      }
    }
    const bool limited = words.size() == 2 && words[0] != "max";
    if (limited || throttled > 0) {
      place.file = folder + "/cpu.max";
      return rows.Warn(kQuota, place,
                       fmt::format("{}, throttled {} times",
                                   limited ? fmt::format("{} us of every {} us", words[0], words[1])
                                           : "no quota now",
                                   throttled));
    }
    if (more) group.resize(group.rfind('/'));
  }
  rows.Ok(kQuota, place, "none");
}

void CheckIrqbalance(const HostTree& tree, PreflightRows& rows) {
  const Place place = {.file = "/proc/*/comm"};
  for (const std::string& name : tree.List("/proc")) {
    if (name.find_first_not_of("0123456789") != name.npos) continue;
    if (tree.Text(fmt::format("/proc/{}/comm", name)) == "irqbalance") {
      return rows.Warn(kIrqbalance, place, "running, process " + name);
    }
  }
  rows.Ok(kIrqbalance, place, "not running, as far as this user sees");
}

}  // namespace

void CheckCpus(const HostTree& tree, const Scope& scope, PreflightRows& rows) {
  CheckQuota(tree, rows);
  CheckPreference(tree, kGovernor, "scaling_governor",
                  "no cpufreq: a virtual machine, or firmware that decides", rows);
  CheckPreference(tree, kEpp, "energy_performance_preference", "the driver has none", rows);
  CheckTurbo(tree, rows);
  CheckIdle(tree, rows);
  if (scope.hardware) CheckIrqbalance(tree, rows);
  CheckLists(tree, rows);
}

}  // namespace verbscope
