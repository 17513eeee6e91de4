// Accidents to packets that come to a device: a PacketReceiver in front of the engine. Rules only;
// the chances of fault_options.h are for packets that are sent. A corrupted packet is counted as an
// ICRC error and goes no further, as on a wire. What comes in a stall is kept, and judged when the
// stall is over.
//
// Tick as for fault_sink.h. Threads: with the device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_RECEIVER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_RECEIVER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/fault_policy.h"
#include "transports/soft/link/held_packets.h"

namespace verbscope::soft {

class FaultReceiver final : public PacketReceiver {
 public:
  // All must outlive the receiver.
  FaultReceiver(FaultPolicy& policy, PacketReceiver& next, Counters& counters)
      : policy_(policy), next_(next), counters_(counters) {}
  FaultReceiver(const FaultReceiver&) = delete;
  FaultReceiver& operator=(const FaultReceiver&) = delete;

  void Receive(PathId path, const Header& header, std::span<const std::byte> payload) override;

  void Tick(uint64_t now_ns);
  // When Tick is due; nothing is held: never.
  std::optional<uint64_t> NextRelease() const {
    return stall_end_ns_ ? stall_end_ns_ : held_.NextRelease();
  }

  // More packets than this in one stall are lost, so that a peer that never stops does not fill the
  // memory: 1 GiB of 4096 bytes each. The peer's send windows are far smaller.
  static constexpr size_t kMaxStalled = size_t{1} << 18;

 private:
  void ReleaseDue();
  void ReleaseAfterStall();

  FaultPolicy& policy_;
  PacketReceiver& next_;
  Counters& counters_;
  uint64_t now_ns_ = 0;
  HeldPackets held_;
  std::optional<uint64_t> stall_end_ns_;  // a stall
  std::deque<HeldPacket> stalled_;        // the packet that began it, and what came behind
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_RECEIVER_H_
