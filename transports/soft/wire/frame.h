// Whole packets: what stands around the transport headers (IPv4 or IPv6, UDP, pad, ICRC). Packets
// of this device on IPv4 have ID 0 and DF, as Linux sends from an unconnected UDP socket with
// IP_PMTUDISC_PROBE; the kernel then writes the IP and UDP headers that the ICRC is computed for.
//
//   BuildTransport(flow, header, pieces, out);   // what a UDP socket sends
//   sendto(socket, out.data(), out.size(), …);
//   if (CheckTransport(flow, received).proof == IcrcProof::kBad) drop;
//
// UDP checksum: 0 on IPv4, as annex A17 asks for. IPv6 requires one (RFC 8200 8.1), and a correct
// one is what the kernel sends, so that is what a frame has there. The ICRC does not cover it.
//
// Pure; any thread. Building allocates only when `out` has to grow.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_WIRE_FRAME_H_
#define VERBSCOPE_TRANSPORTS_SOFT_WIRE_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transports/soft/wire/header.h"
#include "transports/soft/wire/icrc.h"

namespace verbscope::soft {

// The sender's view of a path: everything in the IP and UDP headers that is not the packet's own.
struct Flow {
  // GIDs. Two of the form ::ffff:a.b.c.d mean IPv4, all others IPv6.
  std::array<uint8_t, 16> source{};
  std::array<uint8_t, 16> destination{};
  uint16_t source_port = 0;   // the destination's is always kRoceUdpPort
  uint8_t hop_limit = 64;     // TTL
  uint8_t traffic_class = 0;  // TOS: DSCP and ECN
  uint32_t flow_label = 0;    // 20 bits, IPv6 only

  bool operator==(const Flow&) const = default;
};

bool IsIpv4(const Flow& flow);

// Zero bytes that bring `payload_bytes` to a multiple of four: the right Header::pad.
inline constexpr uint8_t PadFor(size_t payload_bytes) {
  return static_cast<uint8_t>(-payload_bytes & 3);
}

// Both replace the content of `out`. Header::pad says how many zero bytes follow the payload, right
// or not. Headers, payload and pad must fit into a UDP datagram. `ipv4_id`: of the IPv4 header; the
// kernel numbers the segments of one UDP GSO send 0, 1, 2 ….
// From the IP header to the ICRC:
void BuildFrame(const Flow& flow, const Header& header,
                std::span<const std::span<const std::byte>> payload, std::vector<std::byte>& out,
                uint16_t ipv4_id = 0);
// From the BTH to the ICRC:
void BuildTransport(const Flow& flow, const Header& header,
                    std::span<const std::span<const std::byte>> payload,
                    std::vector<std::byte>& out, uint16_t ipv4_id = 0);

// The ICRC for `transport`, BTH … pad (kBthBytes or more), sent along `flow`. The fast path has it
// from icrc_cache.h.
uint32_t TransportIcrc(const Flow& flow, std::span<const std::byte> transport,
                       uint16_t ipv4_id = 0);
// The same in two steps: the state after the IP and UDP headers in front of `transport_bytes`
// (BTH … pad), which a flow shares among packets of one length, and what follows.
uint32_t HeadersIcrc(const Flow& flow, size_t transport_bytes, uint16_t ipv4_id = 0);
uint32_t ExtendByTransport(uint32_t icrc, std::span<const std::byte> transport);

// For a receiver that knows addresses, ports and length. `transport` is BTH … ICRC of any length.
// Whether it is intact and its sender used ID 0 and DF (IPv4):
bool VerifyTransport(const Flow& flow, std::span<const std::byte> transport);
// The same for senders with other IDs: what is proven, and the ID. See icrc.h.
IcrcCheck CheckTransport(const Flow& flow, std::span<const std::byte> transport);
// With the ICRC that `transport` should have for ID 0, known already. kBad for a `transport` that
// has not even room for a BTH and an ICRC.
IcrcCheck CheckTransport(bool ipv4, std::span<const std::byte> transport, uint32_t computed);

struct Frame {
  Flow flow;
  uint16_t ipv4_id = 0;
  std::span<const std::byte> transport;  // BTH … ICRC, a view
};

// Takes a packet from its IP header on apart. Strict, as annex A17 wants it dropped otherwise:
// IPv4 with IHL 5, flags '010', fragment offset 0 and a right header checksum, or IPv6 without
// extension headers; UDP to kRoceUdpPort with a length that agrees; room for BTH and ICRC. Bytes
// after the IP length (Ethernet padding) are ignored. Neither UDP checksum nor ICRC are looked at.
std::optional<Frame> ParseFrame(std::span<const std::byte> packet);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_WIRE_FRAME_H_
