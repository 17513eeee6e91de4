#include "transports/soft/link/local_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>

#include "core/base/error.h"
#include "transports/soft/link/local_address_holders.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {
namespace {

// Loopback addresses tried. With a thousand devices on the host, all of them are taken with a
// probability of less than 1e-100; more likely something holds the port for all addresses.
constexpr uint32_t kTries = 32;

void SetIpv4(LocalAddress& address, const void* bytes) {
  address.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::memcpy(address.gid.data() + 12, bytes, 4);
}

Expected<FileDescriptor> NewSocket(const LocalAddress& address) {
  const int family = address.IsIpv4() ? AF_INET : AF_INET6;
  FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Fail(CallError(ErrorClass::kSetup, "socket", "SOCK_DGRAM", errno));
  return socket;
}

// 0 or the errno. Who holds the port is another matter, which takes a while to find out.
int Bind(const FileDescriptor& socket, const LocalAddress& address) {
  const SocketAddress to = address.Socket(kRoceUdpPort);
  return ::bind(socket.get(), to.generic(), to.size) == 0 ? 0 : errno;
}

std::string Choices() {
  const Expected<std::vector<LocalAddress>> addresses = HostAddresses();
  std::string text;
  if (!addresses) return text;
  for (const LocalAddress& address : *addresses) {
    text += (text.empty() ? "" : ", ") + address.ToText();
  }
  return text;
}

bool LoopbackIsUp() {
  const Expected<std::vector<LocalAddress>> addresses = HostAddresses();
  return addresses && std::any_of(addresses->begin(), addresses->end(), [](const auto& address) {
           return address.IsIpv4() && address.IsLoopback();
         });
}

struct HolderFacts {
  std::string text;
  bool all_addresses = false;  // no other address is better
};

HolderFacts WhoHoldsIt(const LocalAddress& address) {
  const Expected<PortTable> table = PortTable::Open();
  if (!table) return {.text = "another socket holds it"};
  const std::vector<PortHolder> holders = table->Holders(address);
  for (const PortHolder& holder : holders) {
    if (!holder.wildcard) continue;
    if (::access("/sys/module/rdma_rxe", F_OK) == 0) {
      return {.text = "the kernel module rdma_rxe is loaded and holds the port for all addresses",
              .all_addresses = true};
    }
    return {.text = fmt::format("a socket of user {} holds the port for all addresses", holder.uid),
            .all_addresses = true};
  }
  if (holders.empty()) return {.text = "another socket holds it"};
  return {.text = fmt::format("a socket of user {} holds it, this process is of user {}",
                              holders.front().uid, ::geteuid())};
}

bool Multicast(const LocalAddress& address) {
  return address.IsIpv4() ? address.gid[12] >= 224 : address.gid[0] == 0xff;
}

bool AllZero(const LocalAddress& address) {
  const size_t start = address.IsIpv4() ? 12 : 0;
  return std::all_of(address.gid.begin() + static_cast<ptrdiff_t>(start), address.gid.end(),
                     [](uint8_t b) { return b == 0; });
}

Error NotAnAddress(std::string_view text) {
  Error error;
  error.error_class = ErrorClass::kUsage;
  error.message = fmt::format("addr={} is no address of a host", text);
  error.next_step =
      "write addr= with an IPv4 or IPv6 address, for fe80:: with its interface "
      "(fe80::1%eth0)";
  return error;
}

std::optional<LocalAddress> FromInterface(const ifaddrs& entry) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0) return std::nullopt;
  LocalAddress address;
  address.netdev = entry.ifa_name;
  address.interface_index = ::if_nametoindex(entry.ifa_name);
  if (entry.ifa_addr->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, entry.ifa_addr, sizeof(v4));
    SetIpv4(address, &v4.sin_addr);
  } else if (entry.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, entry.ifa_addr, sizeof(v6));
    std::memcpy(address.gid.data(), &v6.sin6_addr, address.gid.size());
  } else {
    return std::nullopt;
  }
  return address;
}

}  // namespace

LocalAddress LocalAddress::Ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  LocalAddress address;
  const uint8_t bytes[] = {a, b, c, d};
  SetIpv4(address, bytes);
  return address;
}

bool LocalAddress::IsIpv4() const {
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.end(), gid.begin());
}

bool LocalAddress::IsLinkLocal() const { return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80; }

bool LocalAddress::IsLoopback() const {
  if (IsIpv4()) return gid[12] == 127;
  return gid == std::array<uint8_t, 16>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
}

std::string LocalAddress::ToText() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (IsIpv4()) {
    ::inet_ntop(AF_INET, gid.data() + 12, text, sizeof(text));
    return text;
  }
  ::inet_ntop(AF_INET6, gid.data(), text, sizeof(text));
  if (!IsLinkLocal() || interface_index == 0) return text;
  return fmt::format("{}%{}", text, netdev.empty() ? std::to_string(interface_index) : netdev);
}

SocketAddress LocalAddress::Socket(uint16_t port) const {
  SocketAddress result;
  if (IsIpv4()) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&v4.sin_addr, gid.data() + 12, 4);
    std::memcpy(&result.storage, &v4, sizeof(v4));
    result.size = sizeof(v4);
    return result;
  }
  sockaddr_in6 v6 = {};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  std::memcpy(&v6.sin6_addr, gid.data(), gid.size());
  if (IsLinkLocal()) v6.sin6_scope_id = interface_index;
  std::memcpy(&result.storage, &v6, sizeof(v6));
  result.size = sizeof(v6);
  return result;
}

Expected<LocalAddress> ParseLocalAddress(std::string_view text) {
  LocalAddress address;
  const size_t percent = text.find('%');
  const std::string number(text.substr(0, percent));
  std::array<uint8_t, 16> bytes = {};
  if (::inet_pton(AF_INET, number.c_str(), bytes.data()) == 1) {
    SetIpv4(address, bytes.data());
  } else if (::inet_pton(AF_INET6, number.c_str(), bytes.data()) == 1) {
    address.gid = bytes;
  } else {
    return Fail(NotAnAddress(text));
  }
  if (AllZero(address) || Multicast(address)) return Fail(NotAnAddress(text));
  if (address.IsLinkLocal() != (percent != std::string_view::npos)) return Fail(NotAnAddress(text));
  if (!address.IsLinkLocal()) return address;
  address.netdev = std::string(text.substr(percent + 1));
  address.interface_index = ::if_nametoindex(address.netdev.c_str());
  if (address.interface_index == 0) {
    return Fail(SetupError(fmt::format("addr={}: there is no interface '{}'", text, address.netdev),
                           "the name is wrong, or it is in another network namespace",
                           fmt::format("use one of: {}", Choices())));
  }
  return address;
}

Expected<std::vector<LocalAddress>> HostAddresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "getifaddrs", "", errno));
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  struct Found {
    std::tuple<bool, uint32_t, bool> rank;  // loopback, interface, IPv6
    LocalAddress address;
  };
  std::vector<Found> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    std::optional<LocalAddress> address = FromInterface(*entry);
    if (!address || Multicast(*address)) continue;
    const bool loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0;
    const std::tuple rank(loopback, address->interface_index, !address->IsIpv4());
    found.push_back({.rank = rank, .address = std::move(*address)});
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found& a, const Found& b) { return a.rank < b.rank; });
  std::vector<LocalAddress> addresses;
  for (Found& entry : found) addresses.push_back(std::move(entry.address));
  return addresses;
}

LocalAddress LoopbackCandidate(uint32_t n) {
  n %= kLoopbackCandidates;
  const auto last = static_cast<uint8_t>(1 + n % 254);
  const auto third = static_cast<uint8_t>(n / 254 % 256);
  const auto second = static_cast<uint8_t>(1 + n / (254 * 256));
  return LocalAddress::Ipv4(127, second, third, last);
}

Expected<BoundSocket> BindOwnLoopback() {
  // A new network namespace has its loopback interface down, lets one bind, and delivers nothing.
  if (!LoopbackIsUp()) return Fail(CannotBind(LoopbackCandidate(0), EADDRNOTAVAIL));
  // Random, not from the process number: those are small and alike in all containers of a host.
  uint32_t start = 0;
  if (::getrandom(&start, sizeof(start), 0) != sizeof(start)) {
    return Fail(CallError(ErrorClass::kSetup, "getrandom", "", errno));
  }
  constexpr uint32_t kStride = 6700417;  // a prime: all tries differ, in all three bytes
  static_assert(kLoopbackCandidates % kStride != 0);
  Expected<FileDescriptor> socket = NewSocket(LoopbackCandidate(0));
  if (!socket) return Fail(std::move(socket.error()));
  LocalAddress address;
  int failed = 0;
  for (uint32_t i = 0; i < kTries; ++i) {
    const uint64_t n = uint64_t{start} + uint64_t{i} * kStride;
    address = LoopbackCandidate(static_cast<uint32_t>(n % kLoopbackCandidates));
    failed = Bind(*socket, address);
    if (failed == 0) return BoundSocket{.address = address, .socket = std::move(*socket)};
    if (failed != EADDRINUSE) break;  // no other address would do either
  }
  return Fail(CannotBind(address, failed));
}

Expected<BoundSocket> BindAlone(const LocalAddress& address) {
  Expected<FileDescriptor> socket = NewSocket(address);
  if (!socket) return Fail(std::move(socket.error()));
  if (const int failed = Bind(*socket, address); failed != 0) {
    return Fail(CannotBind(address, failed));
  }
  return BoundSocket{.address = address, .socket = std::move(*socket)};
}

Error CannotBind(const LocalAddress& address, int errno_value) {
  Error error = CallError(ErrorClass::kSetup, "bind",
                          fmt::format("{} port {}", address.ToText(), kRoceUdpPort), errno_value);
  if (errno_value == EADDRINUSE) {
    HolderFacts holder = WhoHoldsIt(address);
    error.cause = std::move(holder.text);
    error.next_step = fmt::format(
        "use {}a network namespace of its own, or link=memory between processes of one host",
        holder.all_addresses ? "" : "another addr=, ");
  } else if (errno_value == EADDRNOTAVAIL) {
    error.cause = address.IsLoopback() ? "the loopback interface is down or does not have it"
                                       : "no interface that is up has this address";
    const std::string choices = Choices();
    error.next_step = choices.empty() ? "bring an interface up (ip link set lo up)"
                                      : fmt::format("use addr= with one of: {}", choices);
  }
  return error;
}

}  // namespace verbscope::soft
