// The sockets of a UDP link, and the options that make the kernel write the headers that the ICRC
// is computed for.
//
// Receive: bound to a local address and port 4791, where all peers send to. Send: bound to the same
// address and a source port of its own, at or above 0xc000; never connected, since the kernel then
// numbers the IPv4 packets from a random start. Both with IP_PMTUDISC_PROBE: ID 0 and DF, and no
// stale or forged path MTU counts.
//
// UDP checksums stay on, though annex A17 prefers 0 on IPv4: the kernel merges packets on receive
// only if they have one, and refuses to send bursts (UDP_SEGMENT) without. The ICRC does not cover
// it.
//
// Pure functions on descriptors; any thread; nothing waits.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_SOCKET_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_SOCKET_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/local_address.h"

namespace verbscope::soft {

inline constexpr uint16_t kFirstSourcePort = 0xc000;

// What a receive socket got.
struct ReceiveSetup {
  size_t buffer_bytes = 0;  // as the kernel accounts for it: packets take twice their size or so
  bool merges = false;      // the kernel can merge packets (UDP_GRO); it is off
};

// Sets the options of a bound socket. An Error only for what receiving cannot do without.
Expected<ReceiveSetup> PrepareReceive(int socket, bool ipv4, size_t buffer_bytes);

// Whether the kernel merges packets of one burst into one datagram (UDP_GRO). False: it cannot.
bool SetMerging(int socket, bool on);

struct SendSocket {
  FileDescriptor fd;
  LocalAddress address;
  uint16_t wanted_port = 0;
  uint16_t port = 0;  // the source port of its packets
  uint8_t hop_limit = 64;
  uint8_t traffic_class = 0;
  size_t buffer_bytes = 0;  // granted
};

// A socket with `wanted_port` as source port, or another one at or above kFirstSourcePort if that
// is taken. `hop_limit` is not 0.
Expected<SendSocket> OpenSend(const LocalAddress& address, uint16_t wanted_port, uint8_t hop_limit,
                              uint8_t traffic_class, size_t buffer_bytes);

// Asks the kernel to send with an IPv6 flow label (20 bits, not 0) to `peer`. False: it refuses,
// and the packets must go without.
bool ClaimFlowLabel(int socket, const LocalAddress& local, const std::array<uint8_t, 16>& peer,
                    uint32_t flow_label);

// Datagrams that the kernel dropped because the socket was full.
uint64_t SocketDrops(int socket);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_SOCKET_H_
