// A port: whether it is up, as fast as its network device, and with room for large packets.
#include <fmt/core.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "core/doctor/families.h"

namespace verbscope {
namespace {

constexpr RowText kState = {
    .name = "port-state",
    .good = "ACTIVE",
    .symptom = "the port is not usable: a run does not start, or takes another port",
    .fix = "ip link set NAME up; check cable and switch port"};
constexpr RowText kInfiniBandState = {
    .name = "port-state",
    .good = "ACTIVE",
    .symptom = "the port is not usable: a run does not start, or takes another port",
    .fix =
        "INIT: start a subnet manager (opensm), on one host of the fabric; DOWN: check cable and "
        "switch port (ibstat, iblinkinfo)"};
constexpr RowText kRate = {
    .name = "rate",
    .good = "all lanes, and the speed of the network device",
    .symptom = "bandwidth at a fraction of the link's",
    .fix =
        "reseat or replace cable and module; ethtool NAME and the switch show the speeds offered"};
constexpr RowText kMtu = {
    .name = "netdev-mtu",
    .good = "4200 or more (usually 9000), for a RoCE MTU of 4096",
    .symptom = "smaller packets: less bandwidth, more packets per second for the same data",
    .fix = "ip link set NAME mtu 9000, on both hosts and every switch port between"};
constexpr RowText kLid = {
    .name = "lid",
    .good = "not 0",
    .symptom = "connections fail with status 12 (transport retry exceeded)",
    .fix = "start a subnet manager (opensm), on one host of the fabric; sminfo finds it"};
constexpr RowText kSmLid = {.name = "sm-lid",
                            .good = "not 0: a subnet manager has configured the port",
                            .symptom = kLid.symptom,
                            .fix = kLid.fix};
constexpr RowText kPkeys = {
    .name = "pkeys",
    .good = "a full membership (0x8000 set)",
    .symptom = "two limited members of a partition cannot talk: status 12",
    .fix = "make the port a full member in the subnet manager's partitions.conf"};

void CheckState(const HostTree& tree, const Scope& scope, const TreePort& port,
                PreflightRows& rows) {
  const Place place = {.about = port.about, .file = port.folder + "/state", .subject = port.netdev};
  const RowText& text = port.roce() ? kState : kInfiniBandState;
  if (!TextOrSkip(tree, text, place, rows)) return;
  std::string value = port.state;
  if (const auto physical = tree.Text(port.folder + "/phys_state")) value += ", " + *physical;
  if (port.active()) return rows.Ok(text, place, value);
  // A second port without a cable is common; that none is up is not.
  if (scope.any_active) return rows.Warn(text, place, value + "; another port is active");
  rows.Fail(text, place, value);
}

// "100 Gb/sec (4X EDR)": links of InfiniBand and RoCE adapters have four lanes or more; one that
// says 1X has lost some.
bool LostLanes(const std::string& rate) { return rate.find("(1X ") != rate.npos; }

void CheckRate(const HostTree& tree, const TreePort& port, PreflightRows& rows) {
  const Place place = {.about = port.about, .file = port.folder + "/rate", .subject = port.netdev};
  if (!port.active()) return rows.Skip(kRate, place, "the port is not active");
  const auto text = TextOrSkip(tree, kRate, place, rows);
  if (!text) return;
  const std::optional<double> gbit = LeadingNumber(*text);
  if (!gbit) return rows.Skip(kRate, place, "not a rate: " + text->substr(0, 40));
  if (port.software) return rows.Ok(kRate, place, *text + ", a number in the driver");
  if (!port.roce()) return rows.OkIf(!LostLanes(*text), kRate, place, *text);
  const auto megabit = tree.Number(fmt::format("/sys/class/net/{}/speed", port.netdev));
  if (!megabit || *megabit <= 0) return rows.Ok(kRate, place, *text);
  // The verbs' rates are rounded to what the standard has names for.
  const double netdev_gbit = *megabit / 1000.0;
  rows.OkIf(std::abs(netdev_gbit - *gbit) <= netdev_gbit / 10, kRate, place,
            fmt::format("{}; {} has {:g} Gb/s", *text, port.netdev, netdev_gbit));
}

// The largest RoCE MTU of a network device: the kernel takes off what a packet may have of headers
// (iboe_get_mtu in ib_addr.h: GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4).
int RoceMtu(int netdev_mtu) {
  constexpr int kHeaders = 96;
  for (const int mtu : {4096, 2048, 1024, 512, 256}) {
    if (netdev_mtu - kHeaders >= mtu) return mtu;
  }
  return 0;
}

void CheckMtu(const HostTree& tree, const TreePort& port, PreflightRows& rows) {
  const Place place = {.about = port.about,
                       .file = fmt::format("/sys/class/net/{}/mtu", port.netdev),
                       .subject = port.netdev};
  if (port.netdev.empty()) return rows.Skip(kMtu, place, "no network device of it is here");
  const auto mtu = NumberOrSkip(tree, kMtu, place, rows);
  if (!mtu) return;
  rows.OkIf(RoceMtu(*mtu) == 4096, kMtu, place,
            fmt::format("{}, so RoCE packets carry {} bytes at most", *mtu, RoceMtu(*mtu)));
}

// "0x0012", or decimal; nullopt for rubbish.
std::optional<unsigned long> HexNumber(const std::string& text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0') return std::nullopt;
  return value;
}

void CheckLid(const HostTree& tree, const TreePort& port, const RowText& row, const char* file,
              PreflightRows& rows) {
  const Place place = {.about = port.about, .file = fmt::format("{}/{}", port.folder, file)};
  if (!port.active()) return rows.Skip(row, place, "the port is not active");
  const auto text = TextOrSkip(tree, row, place, rows);
  if (!text) return;
  const auto lid = HexNumber(*text);
  if (!lid) return rows.Skip(row, place, "not a number: " + text->substr(0, 40));
  if (*lid == 0) return rows.Fail(row, place, *text);
  rows.Ok(row, place, *text);
}

void CheckPkeys(const HostTree& tree, const TreePort& port, PreflightRows& rows) {
  constexpr unsigned long kFullMember = 0x8000;  // IBTA vol. 1, 10.9.1
  const Place place = {.about = port.about, .file = port.folder + "/pkeys"};
  if (!port.active()) return rows.Skip(kPkeys, place, "the port is not active");
  int full = 0;
  int limited = 0;
  for (const std::string& name : tree.List(place.file)) {
    const auto pkey = HexNumber(tree.Text(fmt::format("{}/{}", place.file, name)).value_or(""));
    if (!pkey || (*pkey & ~kFullMember) == 0) continue;  // free entry
    ++((*pkey & kFullMember) != 0 ? full : limited);
  }
  if (full + limited == 0) return rows.Skip(kPkeys, place, "no entry can be read");
  rows.OkIf(full > 0, kPkeys, place,
            fmt::format("{} of full membership, {} of limited", full, limited));
}

}  // namespace

void CheckPort(const HostTree& tree, const Scope& scope, const TreePort& port,
               PreflightRows& rows) {
  CheckState(tree, scope, port, rows);
  if (port.link_layer == "InfiniBand") {
    // By the link layer, never by whether there is a LID: some RoCE adapters report one.
    CheckLid(tree, port, kLid, "lid", rows);
    CheckLid(tree, port, kSmLid, "sm_lid", rows);
    CheckPkeys(tree, port, rows);
  }
  CheckRate(tree, port, rows);
  if (port.roce()) CheckMtu(tree, port, rows);
}

}  // namespace verbscope
