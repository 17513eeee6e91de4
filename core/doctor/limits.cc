// Whether this process can use a device at all: locked memory, device files, namespaces, cgroup.
#include <fmt/core.h>

#include <charconv>
#include <cstdint>
#include <system_error>

#include "core/base/text_file.h"
#include "core/doctor/families.h"

namespace verbscope {
namespace {

constexpr RowText kMemlock = {
    .name = "memlock",
    .good = "unlimited, or CAP_IPC_LOCK; at least 16 GiB",
    .symptom = "ENOMEM from ibv_reg_mr, ibv_create_cq or ibv_create_qp with memory to spare",
    .fix =
        "ulimit -l unlimited where the process starts (hard limit: /etc/security/limits.conf); "
        "LimitMEMLOCK=infinity in a service; --ulimit memlock=-1 for a container"};
constexpr RowText kDeviceFile = {
    .name = "device-file",
    .good = "there, and open to this user",
    .symptom = "the device is in sysfs, and ibv_open_device fails or does not list it",
    .fix =
        "modprobe ib_uverbs; give the user's group the file (udev rule); in a container: "
        "--device=/dev/infiniband or the device plugin"};
constexpr RowText kRdmaCm = {
    .name = "rdma-cm",
    .good = "there, and open to this user",
    .symptom = "programs that connect through librdmacm fail; verbscope does not need it",
    .fix = "modprobe rdma_ucm; in a container: --device=/dev/infiniband/rdma_cm"};
constexpr RowText kNetnsMode = {
    .name = "netns-mode",
    .good = "shared, unless devices are moved into containers",
    .symptom = "no device in a container, or a GID table of zeros",
    .fix = "rdma system set netns shared, or rdma dev set DEVICE netns CONTAINER for each"};
constexpr RowText kCgroup = {
    .name = "rdma-cgroup",
    .good = "no limit",
    .symptom = "ENOMEM or EAGAIN when objects are created, though the device has room",
    .fix = "echo NAME hca_handle=max hca_object=max > rdma.max of that cgroup"};

// AWS's own check warns below it; a large model's buffers are of that size.
constexpr uint64_t kAmpleMemlock = uint64_t{16} << 30;
// The default of kernels from 5.16 on. Field reports of ENOMEM with buffers of 100 KB have less.
constexpr uint64_t kLeastMemlock = uint64_t{8} << 20;
constexpr int kCapIpcLock = 14;  // linux/capability.h

// CAP_IPC_LOCK lifts the limit only in the host's own user namespace, whose map is the identity.
bool MayLockAll(const HostTree& tree) {
  const std::string status = tree.Text("/proc/self/status").value_or("");
  const std::string mask_text = ValueOfKey(status, "CapEff", ':').value_or("");
  uint64_t mask = 0;
  std::from_chars(mask_text.data(), mask_text.data() + mask_text.size(), mask, 16);
  const std::vector<std::string> map = WordsOf(tree.Text("/proc/self/uid_map").value_or(""));
  return ((mask >> kCapIpcLock) & 1) != 0 &&
         map == std::vector<std::string>{"0", "0", "4294967295"};
}

std::string SizeText(uint64_t bytes) {
  if (bytes >= (uint64_t{1} << 30))
    return fmt::format("{:.3g} GiB", static_cast<double>(bytes) / (1 << 30));
  if (bytes >= (1 << 20)) return fmt::format("{:.3g} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.3g} KiB", static_cast<double>(bytes) / (1 << 10));
}

void CheckMemlock(const HostTree& tree, const Scope& scope, PreflightRows& rows) {
  const Place place = {.file = "/proc/self/limits"};
  const auto text = TextOrSkip(tree, kMemlock, place, rows);
  if (!text) return;
  std::string soft;
  for (const std::string& line : LinesOf(*text)) {
    const std::vector<std::string> words = WordsOf(line);
    if (line.starts_with("Max locked memory") && words.size() > 3) soft = words[3];
  }
  if (soft == "unlimited") return rows.Ok(kMemlock, place, soft);
  uint64_t bytes = 0;
  const auto parsed = std::from_chars(soft.data(), soft.data() + soft.size(), bytes);
  if (parsed.ec != std::errc()) return rows.Skip(kMemlock, place, "has no limit of locked memory");
  if (MayLockAll(tree)) {
    return rows.Ok(kMemlock, place, SizeText(bytes) + ", lifted by CAP_IPC_LOCK");
  }
  if (bytes >= kAmpleMemlock) return rows.Ok(kMemlock, place, SizeText(bytes));
  // Without a device there is nothing yet that would fail.
  if (bytes < kLeastMemlock && !scope.devices.empty()) {
    return rows.Fail(kMemlock, place, SizeText(bytes));
  }
  rows.Warn(kMemlock, place, SizeText(bytes));
}

// Which of /dev/infiniband/uverbsN belongs to the device; empty: none.
std::string UverbsOf(const HostTree& tree, const std::string& device) {
  constexpr char kFolder[] = "/sys/class/infiniband_verbs";
  for (const std::string& name : tree.List(kFolder)) {
    if (tree.Text(fmt::format("{}/{}/ibdev", kFolder, name)) == device) return name;
  }
  return {};
}

void CheckDeviceFile(const HostTree& tree, const TreeDevice& device, PreflightRows& rows) {
  Place place = {.about = device.name, .file = "/sys/class/infiniband_verbs"};
  const std::string node = UverbsOf(tree, device.name);
  if (node.empty()) return rows.Fail(kDeviceFile, place, "no uverbs device of it");
  place.file = "/dev/infiniband/" + node;
  if (tree.Writable(place.file)) return rows.Ok(kDeviceFile, place, node);
  if (!tree.Exists("/dev")) return rows.Skip(kDeviceFile, place, "the tree has no /dev");
  rows.Fail(kDeviceFile, place,
            node + (tree.Exists(place.file) ? ": permission denied" : " is not there"));
}

void CheckRdmaCm(const HostTree& tree, PreflightRows& rows) {
  const Place place = {.file = "/dev/infiniband/rdma_cm"};
  if (tree.Writable(place.file)) return rows.Ok(kRdmaCm, place, "open to this user");
  if (!tree.Exists("/dev")) return rows.Skip(kRdmaCm, place, "the tree has no /dev");
  rows.Warn(kRdmaCm, place, tree.Exists(place.file) ? "permission denied" : "not there");
}

void CheckNetnsMode(const HostTree& tree, PreflightRows& rows) {
  const Place place = {.file = "/sys/module/ib_core/parameters/netns_mode"};
  const auto text = TextOrSkip(tree, kNetnsMode, place, rows);
  if (!text) return;
  const bool shared = *text == "Y" || *text == "1";
  if (!shared && *text != "N" && *text != "0") {
    return rows.Skip(kNetnsMode, place, "neither Y nor N: " + text->substr(0, 40));
  }
  rows.OkIf(shared, kNetnsMode, place, shared ? "shared" : "exclusive");
}

// The cgroup of this process in the unified hierarchy: "/user.slice/session-1.scope", "/".
std::string CgroupOf(const HostTree& tree) {
  for (const std::string& line : LinesOf(tree.Text("/proc/self/cgroup").value_or(""))) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return {};
}

// A limit of any cgroup above holds as well. The root has no file and no limit.
void CheckRdmaCgroup(const HostTree& tree, const TreeDevice& device, PreflightRows& rows) {
  Place place = {.about = device.name, .file = "/proc/self/cgroup", .subject = device.name};
  std::string group = CgroupOf(tree);
  if (group.empty()) return rows.Skip(kCgroup, place, "no cgroup of version 2");
  for (; group.size() > 1; group.resize(group.rfind('/'))) {
    const std::string file = fmt::format("/sys/fs/cgroup{}/rdma.max", group);
    for (const std::string& line : LinesOf(tree.Text(file).value_or(""))) {
      const std::vector<std::string> words = WordsOf(line);
      if (words.size() < 2 || words.front() != device.name) continue;
      for (const std::string& word : words) {
        if (word == device.name || word.ends_with("=max")) continue;
        place.file = file;
        return rows.Warn(kCgroup, place, line);
      }
    }
  }
  rows.Ok(kCgroup, place, "no limit");
}

}  // namespace

void CheckLimits(const HostTree& tree, const Scope& scope, PreflightRows& rows) {
  for (const TreeDevice& device : scope.devices) CheckDeviceFile(tree, device, rows);
  CheckMemlock(tree, scope, rows);
  if (scope.devices.empty()) return;
  CheckRdmaCm(tree, rows);
  CheckNetnsMode(tree, rows);
  for (const TreeDevice& device : scope.devices) CheckRdmaCgroup(tree, device, rows);
}

}  // namespace verbscope
