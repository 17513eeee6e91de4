#include "transports/soft/link/udp_datagram.h"

#include <algorithm>
#include <chrono>

#include "transports/soft/link/udp_sender.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {
namespace {

constexpr std::byte kCnpOpcode{0x81};

uint64_t NowNs() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

// What is proven of an IPv4 or IPv6 packet that is `place`-th of its datagram.
IcrcProof Prove(ArrivalState& arrivals, std::span<const std::byte> packet, size_t place,
                UdpCounts& counts) {
  const std::span<const std::byte> covered = packet.first(packet.size() - kIcrcBytes);
  if (arrivals.numbered && place > 0) {
    const uint32_t icrc = arrivals.icrcs.Of(arrivals.flow, covered, static_cast<uint16_t>(place));
    if (icrc == LoadIcrc(packet.data() + covered.size())) return IcrcProof::kFull;
  }
  const IcrcCheck check =
      CheckTransport(IsIpv4(arrivals.flow), packet, arrivals.icrcs.Of(arrivals.flow, covered));
  if (check.proof != IcrcProof::kRecovered) {
    if (place > 0 && check.proof == IcrcProof::kFull) arrivals.numbered = false;
    return check.proof;
  }
  if (place > 0 && check.id == place && check.dont_fragment) {
    arrivals.numbered = true;
    return IcrcProof::kFull;  // the ID it had to have
  }
  if (!arrivals.own_device) {
    return arrivals.ids.Accept(check.id, check.dont_fragment, NowNs()) ? IcrcProof::kRecovered
                                                                       : IcrcProof::kBad;
  }
  // A burst that was taken apart on its way: still one of few IDs.
  if (!check.dont_fragment || check.id >= kMaxBurst) return IcrcProof::kBad;
  ++counts.placed;
  return IcrcProof::kFull;
}

}  // namespace

std::span<const std::byte> Datagram::Take() {
  const size_t bytes = std::min(segment_bytes_, bytes_.size() - taken_);
  const std::span<const std::byte> packet = bytes_.subspan(taken_, bytes);
  taken_ += bytes;
  ++place_;
  return packet;
}

size_t Datagram::packets_left() const {
  if (done()) return 0;
  if (segment_bytes_ == 0) return 1;
  return std::max<size_t>(1, (bytes_.size() - taken_ + segment_bytes_ - 1) / segment_bytes_);
}

size_t DeliverPackets(Datagram& datagram, PathId path, ArrivalState& arrivals,
                      PacketReceiver& receiver, size_t budget, Counters& counters,
                      UdpCounts& counts) {
  size_t taken = 0;
  for (; taken < budget && !datagram.done(); ++taken) {
    const size_t place = datagram.place();
    const std::span<const std::byte> packet = datagram.Take();
    if (packet.size() < kBthBytes + kIcrcBytes || packet.size() > kMaxUdpPacket) [[unlikely]] {
      ++counters.malformed_pkts;
      continue;
    }
    const IcrcProof proof = Prove(arrivals, packet, place, counts);
    if (proof == IcrcProof::kBad) [[unlikely]] {
      ++counters.icrc_errors;
      continue;
    }
    if (proof == IcrcProof::kRecovered) ++counts.id_recovered;
    if (packet[0] == kCnpOpcode) [[unlikely]] {
      ++counts.cnps;
      continue;
    }
    Header header;
    std::span<const std::byte> payload;
    if (Decode(packet.first(packet.size() - kIcrcBytes), header, payload) != DecodeResult::kOk)
        [[unlikely]] {
      ++counters.malformed_pkts;
      continue;
    }
    if (!arrivals.proof || proof == IcrcProof::kRecovered) {
      arrivals.proof = proof;
      if (!counts.proof || proof == IcrcProof::kRecovered) counts.proof = proof;
    }
    receiver.Receive(path, header, payload);
  }
  return taken;
}

}  // namespace verbscope::soft
