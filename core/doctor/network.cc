// The network below RoCE: several NICs in one subnet, link flaps, and what files do not show.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/doctor/families.h"

namespace verbscope {
namespace {

constexpr RowText kSubnets = {.name = "subnets",
                              .good = "RDMA network devices in subnets of their own"};
constexpr RowText kArpIgnore = {
    .name = "arp-ignore",
    .good = "1 or 2, with several NICs in a subnet",
    .symptom = "a NIC answers for another's address: traffic arrives at the wrong one",
    .fix = "sysctl -w net.ipv4.conf.all.arp_ignore=1"};
constexpr RowText kArpAnnounce = {
    .name = "arp-announce",
    .good = "2, with several NICs in a subnet",
    .symptom = "a NIC announces another's address: answers arrive at the wrong one",
    .fix = "sysctl -w net.ipv4.conf.all.arp_announce=2"};
constexpr RowText kRpFilter = {
    .name = "rp-filter",
    .good = "2 or 0, with several NICs in a subnet",
    .symptom = "connections to the second NIC's address hang: its packets are dropped",
    .fix = "sysctl -w net.ipv4.conf.all.rp_filter=2 net.ipv4.conf.NAME.rp_filter=2"};
constexpr RowText kCarrier = {
    .name = "carrier-changes",
    .good = "those of the start, and no more between two runs of doctor",
    .symptom = "retransmits, broken connections, aborted jobs while the link trains again",
    .fix = "replace cable or module; dmesg -T | grep NAME; ethtool -S NAME (link_down_events_phy)"};
constexpr RowText kLinkDowned = {
    .name = "link-downed",
    .good = "no more between two runs of doctor",
    .symptom = kCarrier.symptom,
    .fix = "replace cable or module; perfquery and ibdiagnet on InfiniBand"};
constexpr RowText kPfc = {.name = "pfc-dscp-pause",
                          .good = "PFC on one priority, trust DSCP, global pause off"};
constexpr RowText kEcn = {.name = "ecn", .good = "on for the priority of RoCE, on both sides"};
constexpr RowText kTos = {.name = "roce-tos",
                          .good = "DSCP << 2 of the lossless priority: 104 or 106 for DSCP 26"};
constexpr RowText kCable = {.name = "cable",
                            .good = "corrected bits below the limit of the module"};

// Drivers and switches take a link down and up some times when they start.
constexpr int kManyFlaps = 10;

// IPv4 subnets on the link of a network device, as /proc/net/route has them: destination and mask
// in hexadecimal, no gateway.
using SubnetNetdevs = std::map<std::string, std::set<std::string>>;

SubnetNetdevs ReadSubnets(const HostTree& tree, const std::set<std::string>& netdevs) {
  SubnetNetdevs subnets;
  for (const std::string& line : LinesOf(tree.Text("/proc/net/route").value_or(""))) {
    const std::vector<std::string> words = WordsOf(line);
    if (words.size() < 8 || !netdevs.contains(words[0]) || words[2] != "00000000") continue;
    if (words[7] == "00000000") continue;  // the default route
    subnets[words[1] + "/" + words[7]].insert(words[0]);
  }
  return subnets;
}

// The kernel uses the larger of `all` and the device's own (ip-sysctl.rst).
int InForce(const HostTree& tree, const std::string& netdev, std::string_view name) {
  const auto value = [&](std::string_view of) {
    return tree.Number(fmt::format("/proc/sys/net/ipv4/conf/{}/{}", of, name)).value_or(0);
  };
  return std::max(value("all"), value(netdev));
}

void CheckShared(const HostTree& tree, const std::set<std::string>& netdevs, PreflightRows& rows) {
  for (const std::string& netdev : netdevs) {
    const auto judge = [&](const RowText& row, std::string_view name, auto good) {
      const Place place = {.file = fmt::format("/proc/sys/net/ipv4/conf/{}/{}", netdev, name),
                           .subject = netdev};
      const int value = InForce(tree, netdev, name);
      rows.OkIf(good(value), row, place,
                fmt::format("{} on {}, which shares its subnet", value, netdev));
    };
    judge(kArpIgnore, "arp_ignore", [](int value) { return value == 1 || value == 2; });
    judge(kArpAnnounce, "arp_announce", [](int value) { return value == 2; });
    judge(kRpFilter, "rp_filter", [](int value) { return value != 1; });
  }
}

void CheckFlaps(const HostTree& tree, const RowText& row, const Place& place, PreflightRows& rows) {
  const auto count = NumberOrSkip(tree, row, place, rows);
  if (count) rows.OkIf(*count <= kManyFlaps, row, place, fmt::format("{}", *count));
}

void CheckEcn(const HostTree& tree, const TreePort& port, PreflightRows& rows) {
  const Place place = {.about = port.about,
                       .file = fmt::format("/sys/class/net/{}/ecn/roce_np/enable", port.netdev)};
  std::vector<std::string> on;
  const std::vector<std::string> priorities = tree.List(place.file);
  for (const std::string& priority : priorities) {
    if (tree.Number(fmt::format("{}/{}", place.file, priority)) == 1) on.push_back(priority);
  }
  if (priorities.empty()) return rows.Skip(kEcn, place, "the driver has no file for it");
  rows.Ok(kEcn, place, on.empty() ? "off" : fmt::format("on for priority {}", fmt::join(on, ", ")));
}

void CheckFabric(const HostTree& tree, const TreePort& port, PreflightRows& rows) {
  rows.Skip(kPfc, {.about = port.about},
            fmt::format("not in files: dcb pfc show dev {0}; dcb app show dev {0}; ethtool -a {0}",
                        port.netdev));
  CheckEcn(tree, port, rows);
  const Place tos = {.about = port.about,
                     .file = fmt::format("/sys/kernel/config/rdma_cm/{}/ports/{}/default_roce_tos",
                                         port.device, port.number)};
  if (const auto value = tree.Text(tos.file)) {
    rows.Ok(kTos, tos, *value);
  } else {
    rows.Skip(kTos, tos, "root must make its folder first: cma_roce_tos -d " + port.device);
  }
  rows.Skip(
      kCable, {.about = port.about},
      fmt::format("for root: ethtool -m {0}; ethtool -S {0} (rx_corrected_bits_phy)", port.netdev));
}

}  // namespace

void CheckSubnets(const HostTree& tree, const Scope& scope, PreflightRows& rows) {
  std::set<std::string> netdevs;
  for (const TreeDevice& device : scope.devices) {
    for (const TreePort& port : device.ports) {
      if (!port.netdev.empty()) netdevs.insert(port.netdev);
    }
  }
  if (netdevs.size() < 2) return;
  std::set<std::string> sharing;
  for (const auto& [subnet, members] : ReadSubnets(tree, netdevs)) {
    if (members.size() > 1) sharing.insert(members.begin(), members.end());
  }
  const Place place = {.file = "/proc/net/route"};
  if (!TextOrSkip(tree, kSubnets, place, rows)) return;
  rows.Ok(
      kSubnets, place,
      sharing.empty() ? "none is shared" : fmt::format("shared by {}", fmt::join(sharing, ", ")));
  CheckShared(tree, sharing, rows);
}

void CheckLink(const HostTree& tree, const TreeDevice& device, const TreePort& port,
               PreflightRows& rows) {
  if (!port.netdev.empty()) {
    CheckFlaps(tree, kCarrier,
               {.about = port.about,
                .file = fmt::format("/sys/class/net/{}/carrier_changes", port.netdev),
                .subject = port.netdev},
               rows);
  }
  CheckFlaps(tree, kLinkDowned,
             {.about = port.about, .file = port.folder + "/counters/link_downed"}, rows);
  if (port.roce() && !device.software && !port.netdev.empty()) CheckFabric(tree, port, rows);
}

}  // namespace verbscope
