#include "core/host/host.h"

#include <fmt/core.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <utility>

#include "core/base/text_file.h"
#include "core/host/affinity.h"
#include "core/host/system_text.h"

namespace verbscope {
namespace {

// A small text file of the system; empty when it cannot be read.
std::string ReadSystemFile(const std::string& path) { return ReadText(path).value_or(""); }

std::string OsName(const utsname& system) {
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    std::string name = PrettyNameOf(ReadSystemFile(path));
    if (!name.empty()) return name;
  }
  return system.sysname;
}

std::string CpuName(const utsname& system) {
  std::string name = CpuModelOf(ReadSystemFile("/proc/cpuinfo"));
  // Boards described by a device tree.
  if (name.empty()) name = ReadSystemFile("/proc/device-tree/model");
  return name.empty() ? system.machine : name;
}

// Of the first CPU that this thread may use.
std::string GovernorOf(const std::vector<int>& cpus) {
  const std::string path = fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor",
                                       cpus.empty() ? 0 : cpus.front());
  return ReadSystemFile(path);
}

}  // namespace

SideRecord DescribeHost(std::string role) {
  SideRecord side;
  side.role = std::move(role);
  utsname system = {};
  (void)uname(&system);  // fails for a bad address only
  side.host = system.nodename;
  side.os = OsName(system);
  side.kernel = system.release;
  side.cpu = CpuName(system);
  std::vector<int> cpus = ThreadCpus();
  side.governor = GovernorOf(cpus);
  if (static_cast<long>(cpus.size()) < sysconf(_SC_NPROCESSORS_ONLN)) {
    side.pinned_cpus = std::move(cpus);
  }
  return side;
}

DeviceRecord Describe(const DeviceInfo& device, const PortInfo& port,
                      const std::optional<GidEntry>& gid) {
  DeviceRecord record;
  record.name = device.name;
  record.kind = Name(device.kind);
  record.provider = device.provider;
  record.firmware = device.firmware;
  record.link_layer = Name(port.link_layer);
  record.port = port.number;
  record.state = port.state;
  record.active_mtu_bytes = port.active_mtu_bytes;
  if (gid) {
    record.gid = GidRecord{
        .index = gid->index, .value = gid->value, .type = gid->type, .netdev = gid->netdev};
  }
  if (device.numa_node >= 0) record.numa_node = device.numa_node;
  if (!device.link.empty()) record.link = device.link;
  if (!device.icrc.empty()) record.icrc = device.icrc;
  return record;
}

std::string Rfc3339Utc(time_t time) {
  std::tm utc = {};
  if (gmtime_r(&time, &utc) == nullptr) return {};  // a year that does not fit an int
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string Rfc3339UtcNow() { return Rfc3339Utc(std::time(nullptr)); }

}  // namespace verbscope
