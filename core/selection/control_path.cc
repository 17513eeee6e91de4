#include "core/selection/control_path.h"

#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "core/selection/address.h"

namespace verbscope {
namespace {

// Address of a socket address of either family; nothing for others (packet sockets).
std::optional<IpAddress> AddressOfSocket(const sockaddr* socket) {
  if (socket == nullptr) return std::nullopt;
  std::array<uint8_t, 4> v4 = {};
  if (socket->sa_family == AF_INET) {
    std::memcpy(v4.data(), &reinterpret_cast<const sockaddr_in*>(socket)->sin_addr, v4.size());
    return ParseIpAddress(fmt::format("{}.{}.{}.{}", v4[0], v4[1], v4[2], v4[3]));
  }
  if (socket->sa_family != AF_INET6) return std::nullopt;
  IpAddress address;
  std::memcpy(address.bytes.data(), &reinterpret_cast<const sockaddr_in6*>(socket)->sin6_addr,
              address.bytes.size());
  return address;
}

// Number of leading ones of a netmask.
int PrefixLengthOf(const sockaddr* netmask) {
  const std::optional<IpAddress> mask = AddressOfSocket(netmask);
  if (!mask) return 0;
  const size_t first = netmask->sa_family == AF_INET ? 12 : 0;
  int bits = 0;
  for (size_t i = first; i < mask->bytes.size(); ++i) bits += std::popcount(mask->bytes[i]);
  return bits;
}

}  // namespace

bool ControlPath::same_host() const {
  if (loopback) return true;
  const std::optional<IpAddress> local = ParseIpAddress(local_address);
  const std::optional<IpAddress> remote = ParseIpAddress(remote_address);
  return (local && local->is_loopback()) || (remote && remote->is_loopback());
}

Expected<LocalNetdev> FindNetdev(std::string_view address) {
  const std::optional<IpAddress> wanted = ParseIpAddress(address);
  if (!wanted) {
    Error error;
    error.error_class = ErrorClass::kSetup;
    error.message = fmt::format("\"{}\" is no numeric IP address", address);
    return Fail(std::move(error));
  }
  const size_t percent = address.find('%');
  const std::string_view zone =
      percent == std::string_view::npos ? std::string_view() : address.substr(percent + 1);

  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return Fail(CallError(ErrorClass::kSetup, "getifaddrs", "", errno));
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, freeifaddrs);
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (!zone.empty() && zone != entry->ifa_name) continue;
    const std::optional<IpAddress> own = AddressOfSocket(entry->ifa_addr);
    if (!own) continue;
    const int prefix_length = PrefixLengthOf(entry->ifa_netmask);
    // Of a loopback netdev every address of the subnet is local: 127.0.0.5 needs no entry.
    const bool whole_subnet = (entry->ifa_flags & IFF_LOOPBACK) != 0 && wanted->is_loopback();
    if (own != wanted && !(whole_subnet && SameSubnet(*own, *wanted, prefix_length))) continue;
    return LocalNetdev{.name = entry->ifa_name, .prefix_length = prefix_length};
  }
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = fmt::format("no netdev of this network namespace has the address {}", address);
  error.next_step = "ip -brief address";
  return Fail(std::move(error));
}

ControlPath MakeControlPath(std::string local_address, std::string remote_address) {
  ControlPath path;
  path.local_address = std::move(local_address);
  path.remote_address = std::move(remote_address);
  if (Expected<LocalNetdev> netdev = FindNetdev(path.local_address); netdev) {
    path.netdev = std::move(netdev->name);
    path.prefix_length = netdev->prefix_length;
  }
  return path;
}

}  // namespace verbscope
