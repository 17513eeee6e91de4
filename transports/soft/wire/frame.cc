#include "transports/soft/wire/frame.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "transports/soft/wire/byte_order.h"

namespace verbscope::soft {
namespace {

constexpr std::byte kUdpProtocol{17};
constexpr std::byte kVersion4Ihl5{0x45};
constexpr uint16_t kDontFragment = 0x4000;  // flags '010', fragment offset 0
constexpr uint32_t kFlowLabelMask = 0xfffff;
// Positions in the headers.
constexpr size_t kIpv4LengthAt = 2;
constexpr size_t kIpv4ChecksumAt = 10;
constexpr size_t kIpv4AddressAt = 12;
constexpr size_t kIpv6AddressAt = 8;
constexpr size_t kUdpLengthAt = 4;
constexpr size_t kUdpChecksumAt = 6;

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool IsMapped(const std::array<uint8_t, 16>& gid) {
  return std::memcmp(gid.data(), kMappedPrefix.data(), kMappedPrefix.size()) == 0;
}

std::array<uint8_t, 16> Mapped(const std::byte* ipv4) {
  std::array<uint8_t, 16> gid;
  std::memcpy(gid.data(), kMappedPrefix.data(), kMappedPrefix.size());
  std::memcpy(gid.data() + kMappedPrefix.size(), ipv4, 4);
  return gid;
}

size_t IpBytes(const Flow& flow) { return IsIpv4(flow) ? kIpv4HeaderBytes : kIpv6HeaderBytes; }

// The IP and UDP headers for `transport_bytes` (BTH … ICRC), checksums 0. Returns their length.
size_t WriteHeaders(const Flow& flow, size_t transport_bytes, uint16_t ipv4_id, std::byte* out) {
  const size_t ip_bytes = IpBytes(flow);
  const size_t udp_bytes = kUdpHeaderBytes + transport_bytes;
  assert(udp_bytes + kIpv4HeaderBytes <= UINT16_MAX);
  if (ip_bytes == kIpv4HeaderBytes) {
    out[0] = kVersion4Ihl5;
    out[1] = std::byte{flow.traffic_class};
    StoreBe16(out + kIpv4LengthAt, static_cast<uint16_t>(ip_bytes + udp_bytes));
    StoreBe32(out + 4, uint32_t{ipv4_id} << 16 | kDontFragment);
    out[8] = std::byte{flow.hop_limit};
    out[9] = kUdpProtocol;
    StoreBe16(out + kIpv4ChecksumAt, 0);
    std::memcpy(out + kIpv4AddressAt, flow.source.data() + 12, 4);
    std::memcpy(out + kIpv4AddressAt + 4, flow.destination.data() + 12, 4);
  } else {
    StoreBe32(out,
              6U << 28 | uint32_t{flow.traffic_class} << 20 | (flow.flow_label & kFlowLabelMask));
    StoreBe16(out + 4, static_cast<uint16_t>(udp_bytes));
    out[6] = kUdpProtocol;
    out[7] = std::byte{flow.hop_limit};
    std::memcpy(out + kIpv6AddressAt, flow.source.data(), 16);
    std::memcpy(out + kIpv6AddressAt + 16, flow.destination.data(), 16);
  }
  std::byte* udp = out + ip_bytes;
  StoreBe16(udp, flow.source_port);
  StoreBe16(udp + 2, kRoceUdpPort);
  StoreBe16(udp + kUdpLengthAt, static_cast<uint16_t>(udp_bytes));
  StoreBe16(udp + kUdpChecksumAt, 0);
  return ip_bytes + kUdpHeaderBytes;
}

// Adds `bytes` as big-endian words to a one's complement sum (RFC 1071). A sum of 32-bit words
// folds to the same as one of 16-bit words.
uint64_t AddWords(uint64_t sum, std::span<const std::byte> bytes) {
  for (; bytes.size() >= 4; bytes = bytes.subspan(4)) sum += LoadBe32(bytes.data());
  std::array<std::byte, 4> rest{};
  std::copy(bytes.begin(), bytes.end(), rest.begin());
  return sum + LoadBe32(rest.data());
}

uint16_t Checksum(uint64_t sum) {
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

// `packet`: an IPv6 header and what follows. RFC 8200 8.1.
uint16_t UdpChecksum(std::span<const std::byte> packet) {
  const std::span<const std::byte> udp = packet.subspan(kIpv6HeaderBytes);
  uint64_t sum = std::to_integer<uint64_t>(kUdpProtocol) + udp.size();
  sum = AddWords(sum, packet.subspan(kIpv6AddressAt, 32));
  const uint16_t checksum = Checksum(AddWords(sum, udp));
  return checksum == 0 ? 0xffff : checksum;  // 0 would mean "none"
}

size_t TotalBytes(std::span<const std::span<const std::byte>> pieces) {
  size_t bytes = 0;
  for (std::span<const std::byte> piece : pieces) bytes += piece.size();
  return bytes;
}

// BTH … ICRC at `offset` of `out`, which becomes that long.
void AppendTransport(const Flow& flow, const Header& header,
                     std::span<const std::span<const std::byte>> payload, uint16_t ipv4_id,
                     size_t offset, std::vector<std::byte>& out) {
  const size_t pad = header.pad & 3U;
  std::array<std::byte, kMaxHeaderBytes> encoded;
  const size_t head = Encode(header, encoded.data());
  const size_t covered = head + TotalBytes(payload) + pad;
  out.resize(offset + covered + kIcrcBytes);  // not cleared first: every byte is written below
  std::byte* to = std::copy_n(encoded.data(), head, out.data() + offset);
  for (std::span<const std::byte> piece : payload) to = std::copy(piece.begin(), piece.end(), to);
  to = std::fill_n(to, pad, std::byte{0});
  StoreIcrc(to, TransportIcrc(flow, std::span(out).subspan(offset, covered), ipv4_id));
}

std::optional<Frame> ParseIpv4(std::span<const std::byte> packet) {
  const std::byte* ip = packet.data();
  if (packet.size() < kIpv4HeaderBytes || ip[0] != kVersion4Ihl5) return std::nullopt;
  if (LoadBe16(ip + 6) != kDontFragment || ip[9] != kUdpProtocol) return std::nullopt;
  if (Checksum(AddWords(0, packet.first(kIpv4HeaderBytes))) != 0) return std::nullopt;
  const size_t length = LoadBe16(ip + kIpv4LengthAt);
  if (length < kIpv4HeaderBytes || length > packet.size()) return std::nullopt;
  Frame frame;
  frame.flow = {.source = Mapped(ip + kIpv4AddressAt),
                .destination = Mapped(ip + kIpv4AddressAt + 4),
                .hop_limit = std::to_integer<uint8_t>(ip[8]),
                .traffic_class = std::to_integer<uint8_t>(ip[1])};
  frame.ipv4_id = LoadBe16(ip + 4);
  frame.transport = packet.subspan(kIpv4HeaderBytes, length - kIpv4HeaderBytes);
  return frame;
}

std::optional<Frame> ParseIpv6(std::span<const std::byte> packet) {
  const std::byte* ip = packet.data();
  if (packet.size() < kIpv6HeaderBytes || ip[6] != kUdpProtocol) return std::nullopt;
  const uint32_t front = LoadBe32(ip);
  const size_t length = LoadBe16(ip + 4);
  if (front >> 28 != 6 || length > packet.size() - kIpv6HeaderBytes) return std::nullopt;
  Frame frame;
  frame.flow = {.hop_limit = std::to_integer<uint8_t>(ip[7]),
                .traffic_class = static_cast<uint8_t>(front >> 20),
                .flow_label = front & kFlowLabelMask};
  std::memcpy(frame.flow.source.data(), ip + kIpv6AddressAt, 16);
  std::memcpy(frame.flow.destination.data(), ip + kIpv6AddressAt + 16, 16);
  if (IsIpv4(frame.flow)) return std::nullopt;  // no node sends these; a Flow cannot say them
  frame.transport = packet.subspan(kIpv6HeaderBytes, length);
  return frame;
}

// Whether a receiver can check `transport` at all; a longer one came in no UDP datagram.
bool HasTransportSize(std::span<const std::byte> transport) {
  return transport.size() >= kBthBytes + kIcrcBytes &&
         transport.size() <= UINT16_MAX - kIpv4HeaderBytes - kUdpHeaderBytes;
}

}  // namespace

bool IsIpv4(const Flow& flow) { return IsMapped(flow.source) && IsMapped(flow.destination); }

uint32_t TransportIcrc(const Flow& flow, std::span<const std::byte> transport, uint16_t ipv4_id) {
  assert(transport.size() >= kBthBytes);
  std::array<std::byte, kMaxMaskedBytes> masked;
  const size_t outer = WriteHeaders(flow, transport.size() + kIcrcBytes, ipv4_id, masked.data());
  std::copy_n(transport.data(), kBthBytes, masked.data() + outer);
  const auto headers = std::span(masked).first(outer + kBthBytes);
  MaskHeaders(headers);
  return ExtendIcrc(ExtendIcrc(kIcrcSeed, headers), transport.subspan(kBthBytes));
}

uint32_t HeadersIcrc(const Flow& flow, size_t transport_bytes, uint16_t ipv4_id) {
  std::array<std::byte, kMaxMaskedBytes> masked = {};
  const size_t outer = WriteHeaders(flow, transport_bytes + kIcrcBytes, ipv4_id, masked.data());
  MaskHeaders(std::span(masked).first(outer + kBthBytes));
  return ExtendIcrc(kIcrcSeed, std::span(masked).first(outer));
}

uint32_t ExtendByTransport(uint32_t icrc, std::span<const std::byte> transport) {
  assert(transport.size() >= kBthBytes);
  std::array<std::byte, kBthBytes> bth;
  std::copy_n(transport.data(), kBthBytes, bth.data());
  MaskBth(bth);
  return ExtendIcrc(ExtendIcrc(icrc, bth), transport.subspan(kBthBytes));
}

void BuildTransport(const Flow& flow, const Header& header,
                    std::span<const std::span<const std::byte>> payload,
                    std::vector<std::byte>& out, uint16_t ipv4_id) {
  AppendTransport(flow, header, payload, ipv4_id, /*offset=*/0, out);
}

void BuildFrame(const Flow& flow, const Header& header,
                std::span<const std::span<const std::byte>> payload, std::vector<std::byte>& out,
                uint16_t ipv4_id) {
  const size_t outer = IpBytes(flow) + kUdpHeaderBytes;
  AppendTransport(flow, header, payload, ipv4_id, outer, out);
  WriteHeaders(flow, out.size() - outer, ipv4_id, out.data());
  if (IsIpv4(flow)) {
    const auto ip = std::span(out).first(kIpv4HeaderBytes);
    StoreBe16(out.data() + kIpv4ChecksumAt, Checksum(AddWords(0, ip)));
  } else {
    StoreBe16(out.data() + kIpv6HeaderBytes + kUdpChecksumAt, UdpChecksum(out));
  }
}

bool VerifyTransport(const Flow& flow, std::span<const std::byte> transport) {
  if (!HasTransportSize(transport)) return false;
  const size_t covered = transport.size() - kIcrcBytes;
  return TransportIcrc(flow, transport.first(covered)) == LoadIcrc(transport.data() + covered);
}

IcrcCheck CheckTransport(const Flow& flow, std::span<const std::byte> transport) {
  if (!HasTransportSize(transport)) return {};
  const size_t covered = transport.size() - kIcrcBytes;
  return CheckTransport(IsIpv4(flow), transport, TransportIcrc(flow, transport.first(covered)));
}

IcrcCheck CheckTransport(bool ipv4, std::span<const std::byte> transport, uint32_t computed) {
  if (!HasTransportSize(transport)) return {};
  const size_t covered = transport.size() - kIcrcBytes;
  const uint32_t received = LoadIcrc(transport.data() + covered);
  if (computed == received) return {.proof = IcrcProof::kFull};
  if (!ipv4) return {};
  const size_t bytes_after_id = kIpv4HeaderBytes - 6 + kUdpHeaderBytes + covered;
  return RecoverId(computed, received, bytes_after_id);
}

std::optional<Frame> ParseFrame(std::span<const std::byte> packet) {
  if (packet.empty()) return std::nullopt;
  std::optional<Frame> frame = packet[0] == kVersion4Ihl5 ? ParseIpv4(packet) : ParseIpv6(packet);
  if (!frame || frame->transport.size() < kUdpHeaderBytes) return std::nullopt;
  const std::span<const std::byte> udp = frame->transport;
  if (LoadBe16(udp.data() + 2) != kRoceUdpPort) return std::nullopt;
  if (LoadBe16(udp.data() + kUdpLengthAt) != udp.size()) return std::nullopt;
  frame->flow.source_port = LoadBe16(udp.data());
  frame->transport = udp.subspan(kUdpHeaderBytes);
  if (!HasTransportSize(frame->transport)) return std::nullopt;
  return frame;
}

}  // namespace verbscope::soft
