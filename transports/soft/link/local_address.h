// Which local address a device takes that sends its packets through UDP sockets, and the socket
// bound to it. Peers always send to port 4791, so an address belongs to one socket at a time,
// unless its users share it (port_sharing.h).
//
//   BindOwnLoopback()    127.x.y.z that no other process has: any number of devices on one host
//   BindAlone(address)   an address of an interface, or ::1
//
// Nothing is reserved by a file or a number of the process: bind(2) decides who has an address, and
// its end gives it back. Sockets are non-blocking and have no other option set. Pure functions; any
// thread. They see the network namespace of the calling thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_LOCAL_ADDRESS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_LOCAL_ADDRESS_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"

namespace verbscope::soft {

// An address as bind(2) wants it.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

struct LocalAddress {
  std::array<uint8_t, 16> gid = {};  // ::ffff:a.b.c.d for IPv4
  uint32_t interface_index = 0;      // 0: not known; fe80:: needs it
  std::string netdev;                // name of the interface; empty: not known

  static LocalAddress Ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d);

  bool IsIpv4() const;
  bool IsLinkLocal() const;  // fe80::/10
  bool IsLoopback() const;   // 127.0.0.0/8, ::1
  // "192.0.2.2", "::1", "fe80::1%eth0".
  std::string ToText() const;
  SocketAddress Socket(uint16_t port) const;
};

// Text of LocalAddress::ToText, whether or not this host has the address. A usage Error for any
// other text and for addresses of no single host (0.0.0.0, ::, multicast); a setup Error for an
// interface this host does not have.
Expected<LocalAddress> ParseLocalAddress(std::string_view text);

// Addresses of interfaces that are up, as a GID table has them: by interface, IPv4 first, those of
// the loopback interface last.
Expected<std::vector<LocalAddress>> HostAddresses();

struct BoundSocket {
  LocalAddress address;
  FileDescriptor socket;  // UDP port 4791
};

// A loopback address for this socket only.
Expected<BoundSocket> BindOwnLoopback();
// `address` for this socket only. A setup Error says who has it, or which addresses there are.
Expected<BoundSocket> BindAlone(const LocalAddress& address);

// The n-th address that BindOwnLoopback may try, any n. Never in 127.0.0.0/16, where people and
// systems choose by hand (127.0.0.1, resolvers at 127.0.0.53, Debian's own name at 127.0.1.1), nor
// in 127.255.0.0/16, which has the broadcast address, nor with a last byte 0 or 255.
LocalAddress LoopbackCandidate(uint32_t n);
inline constexpr uint32_t kLoopbackCandidates = 254U * 256 * 254;

// Why bind(`address`, port 4791) failed with `errno_value`, and what to do.
Error CannotBind(const LocalAddress& address, int errno_value);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_LOCAL_ADDRESS_H_
