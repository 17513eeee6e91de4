#include "transports/soft/options/presentation.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "transports/common/port_text.h"

namespace verbscope::soft {
namespace {

constexpr std::string_view kRoceV2 = "RoCE v2";
constexpr std::array<uint8_t, 12> kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool Same(const ibv_gid& a, const ibv_gid& b) {
  return std::memcmp(a.raw, b.raw, sizeof(a.raw)) == 0;
}

bool IsIpv4(const ibv_gid& gid) {
  return std::memcmp(gid.raw, kIpv4Prefix.data(), kIpv4Prefix.size()) == 0;
}

ibv_gid Ipv4Gid(const void* address) {
  ibv_gid gid = {};
  std::memcpy(gid.raw, kIpv4Prefix.data(), kIpv4Prefix.size());
  std::memcpy(gid.raw + kIpv4Prefix.size(), address, 4);
  return gid;
}

ibv_gid LoopbackIpv4() {
  constexpr std::array<uint8_t, 4> kAddress = {127, 0, 0, 1};
  return Ipv4Gid(kAddress.data());
}

ibv_gid LoopbackIpv6() {
  ibv_gid gid = {};
  gid.raw[15] = 1;
  return gid;
}

bool IsLoopback(const ibv_gid& gid) {
  return IsIpv4(gid) ? gid.raw[12] == 127 : Same(gid, LoopbackIpv6());
}

// Order among the addresses of one interface.
int Rank(const ibv_gid& gid) {
  if (IsIpv4(gid)) return 1;
  const bool link_local = gid.raw[0] == 0xfe && (gid.raw[1] & 0xc0) == 0x80;
  return link_local ? 0 : 2;
}

std::optional<ibv_gid> GidOf(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    return Ipv4Gid(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  ibv_gid gid = {};
  std::memcpy(gid.raw, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, sizeof(gid.raw));
  return gid;
}

// The netdev that owns `gid`; all of 127.0.0.0/8 is the loopback interface's.
std::string OwnerOf(const ibv_gid& gid, std::span<const HostAddress> host) {
  for (const HostAddress& address : host) {
    if (Same(address.gid, gid)) return address.netdev;
  }
  if (!IsLoopback(gid)) return "";
  for (const HostAddress& address : host) {
    if (address.loopback) return address.netdev;
  }
  return "lo";
}

// One list in the order of interfaces of the host, each with its addresses by rank.
std::vector<GidSlot> Ordered(std::span<const HostAddress> host, bool loopback) {
  std::vector<std::string_view> netdevs;
  for (const HostAddress& address : host) {
    if (address.loopback != loopback) continue;
    if (std::find(netdevs.begin(), netdevs.end(), address.netdev) == netdevs.end()) {
      netdevs.push_back(address.netdev);
    }
  }
  std::vector<GidSlot> slots;
  for (const std::string_view netdev : netdevs) {
    for (int rank = 0; rank <= 2; ++rank) {
      for (const HostAddress& address : host) {
        if (address.netdev != netdev || Rank(address.gid) != rank || IsZero(address.gid)) continue;
        slots.push_back(
            {.gid = address.gid, .type = std::string(kRoceV2), .netdev = address.netdev});
      }
    }
  }
  return slots;
}

std::vector<GidSlot> HostTable(std::span<const HostAddress> host) {
  std::vector<GidSlot> last = Ordered(host, /*loopback=*/true);
  for (const ibv_gid& gid : {LoopbackIpv4(), LoopbackIpv6()}) {
    const bool there = std::any_of(last.begin(), last.end(),
                                   [&gid](const GidSlot& slot) { return Same(slot.gid, gid); });
    if (there) continue;
    last.push_back({.gid = gid, .type = std::string(kRoceV2), .netdev = OwnerOf(gid, host)});
  }
  constexpr auto kRoom = static_cast<size_t>(kGidTableEntries);
  last.resize(std::min(last.size(), kRoom));
  std::vector<GidSlot> table = Ordered(host, /*loopback=*/false);
  table.resize(std::min(table.size(), kRoom - last.size()));
  table.insert(table.end(), last.begin(), last.end());
  for (size_t i = 0; i < table.size(); ++i) table[i].index = static_cast<int>(i);
  return table;
}

// The GID that a subnet manager's absence leaves: link-local, and a number that is locally made.
GidSlot InfiniBandSlot(uint16_t lid) {
  GidSlot slot;
  slot.type = "IB";
  slot.gid.raw[0] = 0xfe;
  slot.gid.raw[1] = 0x80;
  slot.gid.raw[8] = 0x02;
  slot.gid.raw[14] = static_cast<uint8_t>(lid >> 8);
  slot.gid.raw[15] = static_cast<uint8_t>(lid & 0xff);
  return slot;
}

}  // namespace

std::vector<HostAddress> ReadHostAddresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  std::vector<HostAddress> addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if ((entry->ifa_flags & IFF_UP) == 0) continue;
    const std::optional<ibv_gid> gid = GidOf(entry->ifa_addr);
    if (!gid) continue;
    addresses.push_back({.netdev = entry->ifa_name,
                         .gid = *gid,
                         .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return addresses;
}

std::vector<GidSlot> GidTable(const SoftOptions& options, std::span<const HostAddress> host) {
  if (options.port.gids) return *options.port.gids;
  if (options.port.link_layer == LinkLayer::kInfiniBand) return {InfiniBandSlot(options.port.lid)};
  if (!options.address) return HostTable(host);
  return {{.gid = *options.address,
           .type = std::string(kRoceV2),
           .netdev = OwnerOf(*options.address, host)}};
}

PortInfo MakePortInfo(const SoftOptions& options, std::span<const GidSlot> table) {
  PortInfo port;
  port.number = 1;
  port.state = PortStateName(options.port.state);
  port.active = options.port.state == IBV_PORT_ACTIVE;
  port.link_layer = options.port.link_layer;
  port.active_mtu_bytes = options.port.active_mtu_bytes;
  port.max_mtu_bytes = options.port.max_mtu_bytes;
  port.max_message_bytes = options.limits.max_message_bytes;
  port.lid = options.port.lid;
  port.sm_lid = options.port.sm_lid;
  for (const GidSlot& slot : table) {
    if (slot.unreadable_errno != 0 || IsZero(slot.gid)) continue;
    port.gids.push_back({.index = slot.index,
                         .value = FormatGid(slot.gid),
                         .type = slot.type,
                         .netdev = slot.netdev,
                         .raw = slot.gid});
  }
  return port;
}

DeviceInfo MakeDeviceInfo(const SoftOptions& options, std::span<const GidSlot> table,
                          std::string_view firmware) {
  DeviceInfo info;
  info.name = options.name;
  info.kind = DeviceKind::kSoftware;
  info.provider = "soft";
  info.firmware = firmware;
  if (options.profile == Profile::kRxe61) info.imitates = "rxe";
  info.limits = options.limits.device;
  if (options.defects.Has(Defect::kOverstatedLimits)) {
    info.limits.max_qp_wr *= 2;
    info.limits.max_cqe *= 2;
    info.limits.max_sge *= 2;
  }
  info.ports.push_back(MakePortInfo(options, table));
  return info;
}

}  // namespace verbscope::soft
