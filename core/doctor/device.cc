// A device and its place in the machine: driver, firmware, PCIe link, NUMA node, IOMMU, interrupts.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/text_file.h"
#include "core/doctor/families.h"

namespace verbscope {
namespace {

constexpr RowText kNodeType = {
    .name = "node-type",
    .good = "CA: InfiniBand or RoCE",
    .symptom = "verbscope refuses the device; iWARP and vendor transports have other semantics",
    .fix =
        "switch the adapter to RoCE where its driver can (irdma: devlink dev param set pci/NAME "
        "name enable_roce value true cmode driverinit; devlink dev reload)"};
constexpr RowText kFirmware = {.name = "firmware", .good = "the same on every host of a fleet"};
constexpr RowText kDriver = {.name = "driver", .good = "the same on both sides"};
constexpr RowText kFunction = {.name = "function", .good = "physical, or known to be virtual"};
constexpr RowText kWidth = {
    .name = "pcie-width",
    .good = "as wide as the device can",
    .symptom = "bandwidth stops at half or a quarter of the link's, with nothing dropped",
    .fix = "move the card to a slot with all lanes, or reseat it; lspci -s NAME -vv (LnkSta)"};
constexpr RowText kSpeed = {
    .name = "pcie-speed",
    .good = "as fast as the device can",
    .symptom = "bandwidth stops at half or a quarter of the link's, with nothing dropped",
    .fix =
        "reseat the card, look for a slot or BIOS setting of a lower generation; lspci -s NAME "
        "-vv (LnkSta)"};
constexpr RowText kPcieSettings = {
    .name = "pcie-settings",
    .good = "MaxPayload 256 or more, MaxReadReq 512 or more; ACS off for peer-to-peer"};
constexpr RowText kNuma = {
    .name = "numa-node",
    .good = "this process may run on the node of the device",
    .symptom = "some hundred ns more per message and less bandwidth; compare with ab",
    .fix = "start it with --cpu and one of the CPUs of the device's node, or under numactl"};
constexpr RowText kIommu = {.name = "iommu",
                            .good = "off, or identity (iommu=pt)",
                            .symptom = "slow registration of memory, lower bandwidth, longer tails",
                            .fix = "add iommu=pt to the kernel's command line and reboot"};
constexpr RowText kInterrupts = {
    .name = "irq-placement",
    .good = "on CPUs of the device's node",
    .symptom = "event mode: later and uneven wake-ups",
    .fix = "write a local CPU to /proc/irq/N/smp_affinity_list of each vector; set_irq_affinity"};

void CheckNodeType(const HostTree& tree, const TreeDevice& device, PreflightRows& rows) {
  const Place place = {
      .about = device.name, .file = device.folder + "/node_type", .subject = device.slot};
  if (!TextOrSkip(tree, kNodeType, place, rows)) return;
  rows.OkIf(device.node_type.starts_with("1"), kNodeType, place, device.node_type);
}

void CheckVersions(const HostTree& tree, const TreeDevice& device, PreflightRows& rows) {
  Place place = {.about = device.name, .file = device.folder + "/fw_ver"};
  if (const auto firmware = TextOrSkip(tree, kFirmware, place, rows)) {
    std::string value = *firmware;
    for (const char* file : {"hca_type", "board_id"}) {
      const std::string more = tree.Text(fmt::format("{}/{}", device.folder, file)).value_or("");
      if (!more.empty()) value += ", " + more;
    }
    rows.Ok(kFirmware, place, value);
  }
  place.file = device.folder + "/device/uevent";
  if (device.driver.empty()) return rows.Skip(kDriver, place, "no bus device");
  const auto version = tree.Text(fmt::format("/sys/module/{}/version", device.driver));
  // Only drivers from outside the kernel have a version of their own.
  rows.Ok(kDriver, place, device.driver + (version ? " " + *version : ", of the kernel"));
}

// current_link_* against max_link_*; virtual functions show neither, or "Unknown".
void CheckLinkFile(const HostTree& tree, const TreeDevice& device, const RowText& row,
                   const char* name, PreflightRows& rows) {
  const std::string bus = device.folder + "/device";
  const Place place = {.about = device.name,
                       .file = fmt::format("{}/current_link_{}", bus, name),
                       .subject = device.slot};
  const auto text = TextOrSkip(tree, row, place, rows);
  if (!text) return;
  const auto most = tree.Text(fmt::format("{}/max_link_{}", bus, name)).value_or("");
  const auto now = LeadingNumber(*text);
  const auto limit = LeadingNumber(most);
  constexpr double kUnknownWidth = 255;  // read from a function that has no link of its own
  if (!now || !limit || *now == 0 || *now >= kUnknownWidth || *limit >= kUnknownWidth) {
    return rows.Skip(row, place, "not shown: " + text->substr(0, 40));
  }
  const std::string_view lanes = std::string_view(name) == "width" ? "x" : "";
  rows.OkIf(*now >= *limit, row, place,
            *now >= *limit ? fmt::format("{}{}", lanes, *text)
                           : fmt::format("{0}{1} of {0}{2}", lanes, *text, most));
}

// CPUs of a node; empty: not known.
std::vector<int> CpusOfNode(const HostTree& tree, int node) {
  return CpusOf(
      tree.Text(fmt::format("/sys/devices/system/node/node{}/cpulist", node)).value_or(""));
}

bool AnyOf(const std::vector<int>& cpus, const std::vector<int>& others) {
  return std::ranges::any_of(cpus, [&](int cpu) { return std::ranges::count(others, cpu) > 0; });
}

void CheckNuma(const HostTree& tree, const TreeDevice& device, int node, PreflightRows& rows) {
  const Place place = {.about = device.name, .file = device.folder + "/device/numa_node"};
  const std::string online = tree.Text("/sys/devices/system/node/online").value_or("");
  if (node < 0) {
    if (CpusOf(online).size() <= 1) return rows.Ok(kNuma, place, "the machine has one node");
    return rows.Skip(kNuma, place, "the firmware does not say which of nodes " + online);
  }
  const std::vector<int> local = CpusOfNode(tree, node);
  const std::string status = tree.Text("/proc/self/status").value_or("");
  const std::string allowed = ValueOfKey(status, "Cpus_allowed_list", ':').value_or("");
  if (local.empty() || allowed.empty()) return rows.Ok(kNuma, place, fmt::format("node {}", node));
  rows.OkIf(AnyOf(CpusOf(allowed), local), kNuma, place,
            fmt::format("node {}; this process may run on CPUs {}", node, allowed));
}

void CheckIommu(const HostTree& tree, const TreeDevice& device, PreflightRows& rows) {
  const Place place = {.about = device.name, .file = device.folder + "/device/iommu_group/type"};
  const auto type = tree.Text(place.file);
  if (!type) return rows.Ok(kIommu, place, "none");
  rows.OkIf(*type == "identity", kIommu, place, *type);
}

// Numbers of the interrupts whose line in /proc/interrupts names the PCI function
// ("mlx5_comp3@pci:0000:3b:00.0") or begins its action with the network device ("eth0-TxRx-0").
std::vector<std::string> InterruptsOf(const HostTree& tree, const TreeDevice& device) {
  std::vector<std::string> names = {device.slot};
  for (const TreePort& port : device.ports) {
    if (!port.netdev.empty()) names.push_back(port.netdev + "-");
  }
  std::vector<std::string> numbers;
  for (const std::string& line : LinesOf(tree.Text("/proc/interrupts").value_or(""))) {
    const std::vector<std::string> words = WordsOf(line);
    if (words.size() < 3 || words.front().find_first_not_of("0123456789:") != std::string::npos) {
      continue;
    }
    if (std::ranges::any_of(names, [&](const std::string& name) {
          return words.back().find(name) != std::string::npos;
        })) {
      numbers.push_back(words.front().substr(0, words.front().find(':')));
    }
  }
  return numbers;
}

void CheckInterrupts(const HostTree& tree, const TreeDevice& device, int node,
                     PreflightRows& rows) {
  const Place place = {.about = device.name, .file = "/proc/interrupts"};
  const std::vector<std::string> interrupts = InterruptsOf(tree, device);
  if (interrupts.empty()) return rows.Skip(kInterrupts, place, "no line names the device");
  const std::vector<int> local = node < 0 ? std::vector<int>() : CpusOfNode(tree, node);
  if (local.empty()) {
    return rows.Ok(kInterrupts, place, fmt::format("{} vectors; one node", interrupts.size()));
  }
  int away = 0;
  int known = 0;
  for (const std::string& number : interrupts) {
    const auto list = tree.Text(fmt::format("/proc/irq/{}/smp_affinity_list", number));
    if (!list || CpusOf(*list).empty()) continue;
    ++known;
    if (!AnyOf(CpusOf(*list), local)) ++away;
  }
  if (known == 0) return rows.Skip(kInterrupts, place, "/proc/irq cannot be read");
  rows.OkIf(away == 0, kInterrupts, place,
            away == 0 ? fmt::format("{} vectors on node {}", known, node)
                      : fmt::format("{} of {} vectors away from node {}", away, known, node));
}

}  // namespace

void CheckDevice(const HostTree& tree, const TreeDevice& device, PreflightRows& rows) {
  CheckNodeType(tree, device, rows);
  CheckVersions(tree, device, rows);
  if (device.software) return;  // the rest is about a card
  const std::string bus = device.folder + "/device";
  const bool is_virtual = tree.Exists(bus + "/physfn");
  rows.Ok(kFunction, {.about = device.name, .file = bus + "/physfn"},
          is_virtual ? "virtual: vport counters only, the link is the physical function's"
                     : "physical");
  CheckLinkFile(tree, device, kWidth, "width", rows);
  CheckLinkFile(tree, device, kSpeed, "speed", rows);
  rows.Skip(kPcieSettings, {.about = device.name, .file = bus + "/config"},
            "configuration space beyond 64 bytes is for root: lspci -s " + device.slot + " -vvv");
  const int node = tree.Number(bus + "/numa_node").value_or(-1);
  CheckNuma(tree, device, node, rows);
  CheckIommu(tree, device, rows);
  CheckInterrupts(tree, device, node, rows);
}

}  // namespace verbscope
