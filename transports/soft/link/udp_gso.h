// Whether packets leave in bursts: plain data, for the link and for the options of a device.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_GSO_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_GSO_H_

#include <cstdint>

namespace verbscope::soft {

// Bursts of packets in one send (UDP GSO).
enum class UdpGso : uint8_t {
  kAuto,  // on IPv6; on IPv4 where the kernel itself takes them apart (UdpRoute)
  kOff,
  kOn,  // whatever the interface: its IPv4 IDs must count 0, 1, 2 …
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_GSO_H_
