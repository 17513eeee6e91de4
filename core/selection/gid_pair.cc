#include "core/selection/gid_pair.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/selection/address.h"

namespace verbscope {
namespace {

using Entries = std::vector<const GidEntry*>;

// The options that force an index, as seen from the client's command line.
constexpr std::string_view kLocalOption = "--gid-index";
constexpr std::string_view kRemoteOption = "--peer gid-index=";

std::string OptionText(std::string_view option, int index) {
  return option.ends_with('=') ? fmt::format("{}{}", option, index)
                               : fmt::format("{} {}", option, index);
}

bool IsRoceV2(const GidEntry& gid) { return gid.type == "RoCE v2"; }

Entries UsableEntries(const PortInfo& port) {
  Entries entries;
  for (const GidEntry& gid : port.gids) {
    if (!AddressOfGid(gid.raw).is_zero()) entries.push_back(&gid);
  }
  return entries;
}

// The entries of one side that may be chosen: all, or the one forced by its option.
Expected<Entries> Candidates(const PortInfo& port, std::optional<int> forced,
                             std::string_view whose, std::string_view option) {
  const Entries entries = UsableEntries(port);
  if (entries.empty()) {
    return Fail(SetupError(
        fmt::format("{} port {} has no GID at all", whose, port.number),
        "its netdev has no address, or it is in another network namespace, as in a container "
        "that was given the device but not the netdev",
        "give the netdev an address, or move it into this namespace (ip link set NETDEV netns …); "
        "verbscope devices shows which netdev owns which GID"));
  }
  if (!forced) return entries;
  std::string known;
  for (const GidEntry* gid : entries) {
    if (gid->index == *forced) return Entries{gid};
    known += (known.empty() ? "" : ", ") + DescribeGid(*gid);
  }
  return Fail(
      SetupError(fmt::format("GID index {} of {} port {} is empty", *forced, whose, port.number),
                 "the entries are: " + known,
                 fmt::format("{} or leave it out", OptionText(option, entries.front()->index))));
}

// What makes a pair hopeless, the worst last: of several hopeless pairs the mildest is explained.
enum class Mismatch { kNone, kScope, kFamily, kType };

Mismatch MismatchOf(const GidEntry& local, const GidEntry& remote) {
  const IpAddress a = AddressOfGid(local.raw);
  const IpAddress b = AddressOfGid(remote.raw);
  if (IsRoceV2(local) != IsRoceV2(remote)) return Mismatch::kType;
  if (a.is_ipv4() != b.is_ipv4()) return Mismatch::kFamily;
  if (a.is_link_local() != b.is_link_local()) return Mismatch::kScope;
  return Mismatch::kNone;
}

std::string MismatchText(Mismatch mismatch) {
  switch (mismatch) {
    case Mismatch::kNone:
      break;
    case Mismatch::kScope:
      return "one is link-local and the other routable, so they cannot reach each other";
    case Mismatch::kFamily:
      return "one is IPv4 and the other IPv6, so they cannot reach each other";
    case Mismatch::kType:
      return "RoCE v1 and RoCE v2 packets have different formats, each side drops the other's";
  }
  return {};
}

std::string NextStepWithoutAnyPair(Mismatch mismatch) {
  if (mismatch == Mismatch::kType) {
    return "set both ports to the same RoCE type; verbscope devices lists the GIDs of each side";
  }
  return "give both netdevs an address of one family in one subnet, such as "
         "ip address add 192.168.77.1/24 dev NETDEV; verbscope devices lists the GIDs of each side";
}

// Facts about a possible pair. The members are in order of importance, so that a pair is better
// when it is greater; indexes count negative, as the lower one is better.
struct Score {
  bool roce_v2 = false;
  bool routable = false;
  bool both_control_addresses = false;
  bool one_subnet = false;
  bool control_netdev = false;
  bool either_control_address = false;
  bool control_family = false;
  int64_t minus_index_sum = 0;
  int64_t minus_local_index = 0;

  auto Key() const {
    return std::make_tuple(roce_v2, routable, both_control_addresses, one_subnet, control_netdev,
                           either_control_address, control_family, minus_index_sum,
                           minus_local_index);
  }
};

// The control path with its addresses read once, not for each of many pairs.
struct Control {
  explicit Control(const ControlPath& path)
      : local(ParseIpAddress(path.local_address)),
        remote(ParseIpAddress(path.remote_address)),
        netdev(path.netdev),
        prefix_length(path.prefix_length) {}

  std::optional<IpAddress> local;
  std::optional<IpAddress> remote;
  std::string_view netdev;
  int prefix_length;
};

Score ScoreOf(const GidEntry& local, const GidEntry& remote, const Control& control) {
  const IpAddress a = AddressOfGid(local.raw);
  const IpAddress b = AddressOfGid(remote.raw);
  const bool same_family = control.local && control.local->is_ipv4() == a.is_ipv4();
  const int prefix =
      same_family && control.prefix_length > 0 ? control.prefix_length : DefaultPrefixLength(a);
  return Score{
      .roce_v2 = IsRoceV2(local),
      .routable = !a.is_link_local(),
      .both_control_addresses = control.local == a && control.remote == b,
      .one_subnet = SameSubnet(a, b, prefix),
      .control_netdev = !control.netdev.empty() && local.netdev == control.netdev,
      .either_control_address = control.local == a || control.remote == b,
      .control_family = same_family,
      .minus_index_sum = -(int64_t{local.index} + remote.index),
      .minus_local_index = -int64_t{local.index},
  };
}

std::string ReasonOf(const Score& score) {
  if (score.both_control_addresses) return "they are the addresses of the control connection";
  if (score.one_subnet) return "same type, and both are in one subnet";
  if (score.control_netdev) return "same type, on the netdev of the control connection";
  return "same type, family and scope";
}

// VLAN id in a netdev name ("eth0.100", "vlan100"), 0 for none. Only the usual names are known;
// that is enough for a warning.
int VlanOf(std::string_view netdev) {
  size_t digits = std::string_view::npos;
  if (const size_t dot = netdev.rfind('.'); dot != std::string_view::npos) digits = dot + 1;
  if (netdev.starts_with("vlan")) digits = 4;
  if (digits == std::string_view::npos) return 0;
  int id = 0;
  const char* end = netdev.data() + netdev.size();
  const auto [last, error] = std::from_chars(netdev.data() + digits, end, id);
  return error == std::errc() && last == end && id > 0 && id < 4095 ? id : 0;
}

std::string VlanNotice(const GidEntry& local, const GidEntry& remote, bool one_subnet) {
  if (!one_subnet || local.netdev.empty() || remote.netdev.empty()) return {};
  const int here = VlanOf(local.netdev);
  const int there = VlanOf(remote.netdev);
  if (here == there) return {};
  return fmt::format(
      "the GIDs are in one subnet but on different VLANs: local {}, remote {}; if packets are "
      "lost, choose entries of one VLAN with --gid-index",
      DescribeGid(local), DescribeGid(remote));
}

struct Pair {
  const GidEntry* local = nullptr;
  const GidEntry* remote = nullptr;
  explicit operator bool() const { return local != nullptr; }
};

// The best pair without a mismatch; empty when there is none. Tables are small (256 entries at
// most on common devices), so all pairs are looked at.
Pair BestPair(const Entries& locals, const Entries& remotes, const Control& control) {
  Pair best;
  Score best_score;
  for (const GidEntry* local : locals) {
    for (const GidEntry* remote : remotes) {
      if (MismatchOf(*local, *remote) != Mismatch::kNone) continue;
      const Score score = ScoreOf(*local, *remote, control);
      if (best && score.Key() <= best_score.Key()) continue;
      best = {.local = local, .remote = remote};
      best_score = score;
    }
  }
  return best;
}

// The refusal of a choice without any possible pair. `locals` and `remotes` are not empty.
Error RefusePairs(const Entries& locals, const Entries& remotes, const Pair& without_options) {
  Pair mildest;
  Mismatch mismatch = Mismatch::kType;
  for (const GidEntry* local : locals) {
    for (const GidEntry* remote : remotes) {
      const Mismatch found = MismatchOf(*local, *remote);
      if (mildest && found >= mismatch) continue;
      mildest = {.local = local, .remote = remote};
      mismatch = found;
    }
  }
  std::string next_step = NextStepWithoutAnyPair(mismatch);
  if (without_options) {
    next_step =
        fmt::format("{} with {}, or neither option: local {} and remote {} fit",
                    OptionText(kLocalOption, without_options.local->index),
                    OptionText(kRemoteOption, without_options.remote->index),
                    DescribeGid(*without_options.local), DescribeGid(*without_options.remote));
  }
  return SetupError(fmt::format("local GID {} does not fit remote GID {}",
                                DescribeGid(*mildest.local), DescribeGid(*mildest.remote)),
                    MismatchText(mismatch), std::move(next_step));
}

Expected<GidPair> ChooseOnEthernet(const PortInfo& local, const PortInfo& remote,
                                   std::optional<int> local_index, std::optional<int> remote_index,
                                   const ControlPath& path) {
  const auto locals = Candidates(local, local_index, "the local", kLocalOption);
  if (!locals) return Fail(locals.error());
  const auto remotes = Candidates(remote, remote_index, "the peer's", kRemoteOption);
  if (!remotes) return Fail(remotes.error());

  const Control control(path);
  const Pair best = BestPair(*locals, *remotes, control);
  if (!best) {
    return Fail(RefusePairs(*locals, *remotes,
                            BestPair(UsableEntries(local), UsableEntries(remote), control)));
  }
  const Score score = ScoreOf(*best.local, *best.remote, control);
  return GidPair{.local = *best.local,
                 .remote = *best.remote,
                 .needs_grh = true,
                 .reason = ReasonOf(score),
                 .notice = VlanNotice(*best.local, *best.remote, score.one_subnet)};
}

// The forced entry, or index 0. A port without any entry still works by LID: it has a zero GID of
// index 0, which may be forced too, as the peer of a side that chose it does.
Expected<GidEntry> InfiniBandGid(const PortInfo& port, std::optional<int> forced,
                                 std::string_view whose, std::string_view option) {
  const Entries entries = UsableEntries(port);
  if (entries.empty() && forced.value_or(0) == 0) {
    return GidEntry{.index = 0, .value = {}, .type = "IB", .netdev = {}};
  }
  if (forced) {
    const auto candidates = Candidates(port, forced, whose, option);
    if (!candidates) return Fail(candidates.error());
    return *candidates->front();
  }
  return **std::min_element(entries.begin(), entries.end(),
                            [](const auto* a, const auto* b) { return a->index < b->index; });
}

Expected<GidPair> ChooseOnInfiniBand(const PortInfo& local, const PortInfo& remote,
                                     std::optional<int> local_index,
                                     std::optional<int> remote_index) {
  for (const bool peer : {false, true}) {
    const PortInfo& port = peer ? remote : local;
    if (port.lid != 0) continue;
    return Fail(SetupError(
        fmt::format("{} InfiniBand port {} has LID 0", peer ? "the peer's" : "the local",
                    port.number),
        "no subnet manager has configured it",
        "start a subnet manager (opensm on one host, or the one of a switch); sminfo finds it"));
  }
  auto own = InfiniBandGid(local, local_index, "the local", kLocalOption);
  if (!own) return Fail(own.error());
  auto peers = InfiniBandGid(remote, remote_index, "the peer's", kRemoteOption);
  if (!peers) return Fail(peers.error());

  // The first 8 bytes of a GID are the subnet prefix (InfiniBand specification). Without
  // both GIDs nothing speaks for a router between the sides.
  constexpr size_t kPrefixBytes = 8;
  const bool both = !AddressOfGid(own->raw).is_zero() && !AddressOfGid(peers->raw).is_zero();
  const bool one_subnet = !both || std::memcmp(own->raw.raw, peers->raw.raw, kPrefixBytes) == 0;
  GidPair pair;
  pair.needs_grh = !one_subnet;
  pair.reason = one_subnet ? "one InfiniBand subnet, addressed by LID"
                           : "different InfiniBand subnets, addressed by GID";
  if (!one_subnet) {
    pair.notice = fmt::format(
        "the subnet prefixes differ (local {}, remote {}): this needs an InfiniBand router",
        DescribeGid(*own), DescribeGid(*peers));
  }
  pair.local = *std::move(own);
  pair.remote = *std::move(peers);
  return pair;
}

}  // namespace

std::string DescribeGid(const GidEntry& gid) {
  return fmt::format("index {} ({}, {}, netdev {})", gid.index, ToText(AddressOfGid(gid.raw)),
                     gid.type.empty() ? "type unknown" : gid.type,
                     gid.netdev.empty() ? "unknown" : gid.netdev);
}

Expected<GidPair> ChooseGidPair(const PortInfo& local, const PortInfo& remote,
                                std::optional<int> local_index, std::optional<int> remote_index,
                                const ControlPath& path) {
  if (local.link_layer != remote.link_layer || local.link_layer == LinkLayer::kUnspecified) {
    return Fail(SetupError(
        fmt::format("the local port {} is {} and the peer's port {} is {}", local.number,
                    Name(local.link_layer), remote.number, Name(remote.link_layer)),
        "both must be InfiniBand or both Ethernet",
        "choose ports of one kind with --device and --ib-port, here and there; verbscope devices "
        "lists them"));
  }
  if (local.link_layer == LinkLayer::kInfiniBand) {
    return ChooseOnInfiniBand(local, remote, local_index, remote_index);
  }
  return ChooseOnEthernet(local, remote, local_index, remote_index, path);
}

}  // namespace verbscope
