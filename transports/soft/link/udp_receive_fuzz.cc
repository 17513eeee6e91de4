// libFuzzer target of what a UDP link does with received bytes:
// bazel build --config=fuzz //transports/soft/link:udp_receive_fuzz
//
// Properties: no datagram, merged or not, makes the code read out of bounds; each of its packets is
// either delivered or counted, once; what is delivered is within its packet, and that packet's ICRC
// is right for an ID that its peer may use. The same of the bytes that a peer says it is with.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "transports/soft/link/udp_blob.h"
#include "transports/soft/link/udp_datagram.h"
#include "transports/soft/link/udp_sender.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"
#include "transports/soft/wire/icrc.h"

namespace verbscope::soft {
namespace {

using View = std::span<const std::byte>;

void Require(bool condition) {
  if (!condition) std::abort();
}

constexpr PathId kPath = 5;
constexpr size_t kFrontBytes = 4;  // of the input, before the datagram

struct Case {
  bool ipv4;
  bool own_device;
  bool numbered;
  bool right_icrcs;  // else as they are
  bool place_ids;    // right for IDs that count
  size_t segment;
  size_t budget;
};

Case ReadCase(const uint8_t* data) {
  const uint8_t flags = data[0];
  return {.ipv4 = (flags & 1) != 0,
          .own_device = (flags & 2) != 0,
          .numbered = (flags & 4) != 0,
          .right_icrcs = (flags & 8) != 0,
          .place_ids = (flags & 16) != 0,
          .segment = static_cast<size_t>(data[1] | data[2] << 8),
          .budget = data[3] % 8U + 1U};
}

Flow FlowOf(bool ipv4) {
  Flow flow;
  flow.source[15] = 1;
  flow.destination[15] = 2;
  if (ipv4) {
    flow.source[10] = flow.source[11] = flow.destination[10] = flow.destination[11] = 0xff;
  }
  flow.source_port = 0xc000;
  return flow;
}

// Random bytes have no right ICRC in a lifetime.
void FixIcrcs(const Case& c, const Flow& flow, std::span<std::byte> bytes) {
  const size_t segment = c.segment == 0 ? bytes.size() : c.segment;
  uint16_t place = 0;
  for (size_t at = 0; at < bytes.size(); at += segment, ++place) {
    const auto packet = bytes.subspan(at, std::min(segment, bytes.size() - at));
    if (packet.size() < kBthBytes + kIcrcBytes || packet.size() > kMaxUdpPacket) continue;
    const auto covered = packet.first(packet.size() - kIcrcBytes);
    const uint16_t id = c.place_ids && c.ipv4 ? place : uint16_t{0};
    StoreIcrc(packet.data() + covered.size(), TransportIcrc(flow, covered, id));
  }
}

class Judge final : public PacketReceiver {
 public:
  Judge(const Case& c, const Flow& flow, View bytes) : case_(c), flow_(flow), bytes_(bytes) {}

  void Receive(PathId path, const Header& header, View payload) override {
    ++delivered;
    Require(path == kPath);
    Require(payload.size() <= kMaxUdpPayload + 3);
    // The packet that it is part of.
    const std::byte* end = payload.data() + payload.size();
    Require(payload.data() >= bytes_.data() && end <= bytes_.data() + bytes_.size());
    const size_t segment = case_.segment == 0 ? bytes_.size() : case_.segment;
    // The header lies in the packet even if it has no payload.
    const auto at = static_cast<size_t>(payload.data() - bytes_.data()) - 1;
    const size_t start = at / segment * segment;
    const View packet = bytes_.subspan(start, std::min(segment, bytes_.size() - start));
    Require(end + header.pad + kIcrcBytes == packet.data() + packet.size());
    const IcrcCheck check = CheckTransport(flow_, packet);
    Require(check.proof != IcrcProof::kBad);
    Require(case_.ipv4 || check.proof == IcrcProof::kFull);
    if (case_.own_device) Require(check.id < kMaxBurst || check.id == start / segment);
  }

  size_t delivered = 0;

 private:
  const Case& case_;
  const Flow& flow_;
  const View bytes_;
};

void TakeApart(const Case& c, std::span<std::byte> bytes) {
  const Flow flow = FlowOf(c.ipv4);
  if (c.right_icrcs) FixIcrcs(c, flow, bytes);
  ArrivalState arrivals;
  arrivals.flow = flow;
  arrivals.own_device = c.own_device;
  arrivals.numbered = c.numbered && c.ipv4;
  Datagram datagram(bytes, c.segment);
  const size_t packets = datagram.packets_left();
  Judge judge(c, flow, bytes);
  Counters counters;
  UdpCounts counts;
  size_t taken = 0;
  while (!datagram.done()) {
    const size_t now = DeliverPackets(datagram, kPath, arrivals, judge, c.budget, counters, counts);
    Require(now > 0 && now <= c.budget);
    taken += now;
  }
  Require(taken == packets);
  Require(judge.delivered + counters.icrc_errors + counters.malformed_pkts + counts.cnps ==
          packets);
  Require(arrivals.proof.has_value() == (judge.delivered > 0));
}

}  // namespace
}  // namespace verbscope::soft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace verbscope::soft;  // NOLINT(google-build-using-namespace)
  const auto blob = ParseUdpBlob(std::as_bytes(std::span(data, size)));
  if (blob) Require(EncodeUdpBlob(*blob).size() == size);
  if (size < kFrontBytes) return 0;
  // A block of its own, so that the sanitizer sees its ends.
  std::vector<std::byte> bytes(size - kFrontBytes);
  if (!bytes.empty()) std::memcpy(bytes.data(), data + kFrontBytes, bytes.size());
  TakeApart(ReadCase(data), bytes);
  return 0;
}
