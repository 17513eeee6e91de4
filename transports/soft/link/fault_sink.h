// Accidents to packets that a device sends: a PacketSink in front of a link (or of a capture, which
// then sees what really went).
//
//   FaultPolicy policy(options);
//   FaultSink sink(policy, link, link, link);   // the engine sends to `sink`
//   sink.Tick(now_ns);                          // before the engine runs, and at NextRelease()
//
// Tick says what time it is, and lets held packets go; Send reads no clock. A corrupted packet goes
// as bytes with one bit flipped under its old ICRC. When the link has no room, a packet is refused
// before anything is decided or counted. In a stall there is no room: whoever sends waits, as for a
// full link, so nothing is lost and nothing piles up here.
//
// Threads: with the device's lock held. Flush the link after Tick as after Send.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_SINK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_SINK_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/fault_policy.h"
#include "transports/soft/link/held_packets.h"
#include "transports/soft/link/link.h"
#include "transports/soft/link/path_flows.h"

namespace verbscope::soft {

class FaultSink final : public PacketSink {
 public:
  // All must outlive the sink.
  FaultSink(FaultPolicy& policy, PacketSink& next, RawPacketSink& raw_next, const PathFlows& flows)
      : policy_(policy), next_(next), raw_next_(raw_next), flows_(flows) {}
  FaultSink(const FaultSink&) = delete;
  FaultSink& operator=(const FaultSink&) = delete;

  bool Send(PathId path, const Header& header, PayloadPieces payload) override;
  bool CanSend(PathId path) const override {
    return !stall_end_ns_ && !held_.Full() && next_.CanSend(path);
  }

  void Tick(uint64_t now_ns);
  // When Tick is due; nothing is held: never. May be in the past: the link had no room.
  std::optional<uint64_t> NextRelease() const {
    return stall_end_ns_ ? stall_end_ns_ : held_.NextRelease();
  }

 private:
  // Sends now; false: no room.
  bool Pass(PathId path, const Header& header, PayloadPieces payload, bool corrupt);
  bool PassCorrupted(PathId path, const Header& header, PayloadPieces payload);
  void ReleaseDue();
  void ReleaseAfterStall();

  FaultPolicy& policy_;
  PacketSink& next_;
  RawPacketSink& raw_next_;
  const PathFlows& flows_;
  uint64_t now_ns_ = 0;
  HeldPackets held_;
  std::optional<uint64_t> stall_end_ns_;  // a stall; over when its first packet has gone, too
  std::optional<HeldPacket> stalled_;     // that packet
  std::vector<std::byte> bytes_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_SINK_H_
