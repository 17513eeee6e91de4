// The floor under the soft device over UDP: two processes that throw one datagram to and fro
// through plain sockets on the loopback interface, both spinning. For speed_probe.cc only.
#ifndef VERBSCOPE_TESTS_SOFT_UDP_PING_PONG_H_
#define VERBSCOPE_TESTS_SOFT_UDP_PING_PONG_H_

#include <cstddef>
#include <cstdint>

namespace verbscope::soft {

// Datagrams as long as a SEND of `payload_bytes` is on the wire: BTH, payload, ICRC. Prints
// {"p50_ns": …} of half a round trip, as `speed_probe lat` does. The process's exit status.
int UdpPingPong(size_t payload_bytes, uint64_t milliseconds);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TESTS_SOFT_UDP_PING_PONG_H_
