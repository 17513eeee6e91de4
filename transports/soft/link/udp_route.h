// Which interface packets to an address leave by, and what a UDP link has to know of it.
//
// Asks the kernel (rtnetlink, ethtool); no privilege needed. Pure functions; any thread; they see
// the network namespace of the calling thread. Nothing waits.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_ROUTE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_ROUTE_H_

#include <array>
#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "transports/soft/link/local_address.h"

namespace verbscope::soft {

struct UdpRoute {
  std::string netdev;      // "eth0"
  uint32_t mtu_bytes = 0;  // of the interface: the largest IP packet
  // The kernel itself takes a UDP GSO send apart, and so numbers the IPv4 IDs 0, 1, 2 …. True of
  // the loopback interface and of veth. An adapter that does it may number otherwise. (A veth whose
  // other end is bridged to such an adapter hands it the whole burst: UdpGso::kOff is for that.)
  bool software_segments = false;
};

// From `local`, which is an address of this host, to `peer` (a GID; fe80:: is of the interface of
// `local`). A setup Error if there is no way.
Expected<UdpRoute> FindUdpRoute(const LocalAddress& local, const std::array<uint8_t, 16>& peer);

// The largest RoCE path MTU, 256 … 4096, whose packets fit an interface; 0: none. 80 bytes are for
// the headers: IPv6, UDP, BTH, RETH, ImmDt and ICRC are no more.
uint32_t RoceMtu(uint32_t interface_mtu_bytes);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_ROUTE_H_
