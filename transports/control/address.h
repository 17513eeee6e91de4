// An address of the control channel, and how a host name becomes addresses.
//
// Plain values and free functions, any thread.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_ADDRESS_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_ADDRESS_H_

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"

namespace verbscope {

class SocketAddress {
 public:
  SocketAddress() = default;  // of no network: a socket pair within one process
  SocketAddress(const sockaddr* address, socklen_t length);
  // Addresses of a connected socket; of no network when the kernel knows none.
  static SocketAddress LocalOf(int fd);
  static SocketAddress RemoteOf(int fd);

  // AF_INET or AF_INET6 as the socket has it; AF_UNSPEC for no network.
  int family() const;
  // "192.0.2.1", "2001:db8::1", "fe80::1%eth0"; an IPv4-mapped address as the IPv4 address it
  // means, so that it can be looked up among those of the interfaces. Empty for no network.
  std::string Host() const;
  uint16_t Port() const;
  // "192.0.2.1:18600", "[2001:db8::1]:18600", "this process".
  std::string ToText() const;

  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t length() const { return length_; }
  bool operator==(const SocketAddress& other) const;

 private:
  sockaddr_storage storage_ = {};
  socklen_t length_ = 0;
};

// What one call of the resolver gave.
struct Resolution {
  int code = 0;         // 0 or EAI_…
  int errno_value = 0;  // with EAI_SYSTEM
  std::vector<SocketAddress> addresses;
};
using ResolveFunction = std::function<Resolution(const std::string& host, uint16_t port)>;

// getaddrinfo(3) for TCP. Blocks for as long as the system's resolver likes.
Resolution SystemResolve(const std::string& host, uint16_t port);

// Addresses of `host`, IPv4 and IPv6 in the resolver's order: a name, an address of either family,
// "[v6]", or "fe80::1%eth0". An address is answered at once; a name is looked up by `resolve` in a
// thread of its own, since a resolver has no deadline; a look-up still running at the deadline is
// left to end by itself. A temporary failure (EAI_AGAIN) is tried again until the deadline; any
// other is final: kSetup. kInterrupted when `interrupt_fd` (or -1) becomes readable.
Expected<std::vector<SocketAddress>> Resolve(const std::string& host, uint16_t port,
                                             Deadline deadline, int interrupt_fd,
                                             const ResolveFunction& resolve = SystemResolve);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_ADDRESS_H_
