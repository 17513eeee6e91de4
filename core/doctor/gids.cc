// The GID table of a RoCE port: without a GID of the right type and address nothing connects.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/doctor/families.h"

namespace verbscope {
namespace {

constexpr RowText kGids = {
    .name = "gids",
    .good = "one or more that are not zero",
    .symptom = "no connection: a RoCE address needs a GID",
    .fix =
        "the network device is down, or in another network namespace: run where it is (ip -br "
        "link), or give the container the interface"};
constexpr RowText kType = {
    .name = "gid-type",
    .good = "RoCE v2, on both sides",
    .symptom = "a peer with RoCE v2 is never reached (status 12), and v1 is not routed",
    .fix =
        "load the driver with RoCE v2 (mlx5: cma_roce_mode -d NAME -p 1 -m 2; firmware option "
        "ROCE_CONTROL), or use v1 on both sides"};
constexpr RowText kAddress = {
    .name = "gid-address",
    .good = "an IP address of the network device: a GID that can be routed",
    .symptom =
        "peers of another subnet are not reached; other tools take GID 0, which is link-local",
    .fix = "ip addr add ADDRESS/PREFIX dev NAME"};
constexpr RowText kNetdev = {
    .name = "gid-netdev",
    .good = "one network device, in this namespace",
    .symptom = "the GID index decides over VLAN and interface, and differs from host to host",
    .fix =
        "choose by address, not by number: verbscope does; other tools need --gid-index from "
        "verbscope devices"};

void CheckTypes(const TreePort& port, const Place& place, PreflightRows& rows) {
  std::vector<int> v2;
  bool known = false;
  for (const TreeGid& gid : port.gids) {
    known |= !gid.type.empty();
    if (gid.type == "RoCE v2") v2.push_back(gid.index);
  }
  if (!known) return rows.Skip(kType, place, "no type can be read");
  rows.OkIf(!v2.empty(), kType, place,
            v2.empty() ? "RoCE v1 only" : fmt::format("RoCE v2 at index {}", fmt::join(v2, ", ")));
}

void CheckAddresses(const TreePort& port, const Place& place, PreflightRows& rows) {
  std::vector<int> routable;
  for (const TreeGid& gid : port.gids) {
    if (!gid.link_local()) routable.push_back(gid.index);
  }
  rows.OkIf(!routable.empty(), kAddress, place,
            routable.empty() ? "link-local GIDs only"
                             : fmt::format("routable at index {}", fmt::join(routable, ", ")));
}

void CheckNetdevs(const HostTree& tree, const TreePort& port, const Place& place,
                  PreflightRows& rows) {
  std::set<std::string> here;
  bool unreadable = false;
  for (const TreeGid& gid : port.gids) {
    if (!gid.netdev.empty() && tree.Exists("/sys/class/net/" + gid.netdev)) {
      here.insert(gid.netdev);
    } else {
      unreadable = true;  // the kernel answers EINVAL for a device of another namespace
    }
  }
  std::string value =
      here.empty() ? "none of them is here" : fmt::format("{}", fmt::join(here, ", "));
  if (unreadable && !here.empty()) value += ", and one that is not in this namespace";
  rows.OkIf(here.size() == 1 && !unreadable, kNetdev, place, value);
}

}  // namespace

void CheckGids(const HostTree& tree, const TreePort& port, PreflightRows& rows) {
  Place place = {.about = port.about, .file = port.folder + "/gids", .subject = port.netdev};
  if (!port.gids.empty()) {
    rows.Ok(kGids, place, fmt::format("{} in use", port.gids.size()));
  } else {
    // A port that is down often has none, and says why itself.
    if (!port.active()) return rows.Skip(kGids, place, "the port is not active");
    return rows.Fail(kGids, place, "all are zero");
  }
  CheckAddresses(port, place, rows);
  place.file = port.folder + "/gid_attrs/types";
  place.subject = port.device;
  CheckTypes(port, place, rows);
  place.file = port.folder + "/gid_attrs/ndevs";
  CheckNetdevs(tree, port, place, rows);
}

}  // namespace verbscope
