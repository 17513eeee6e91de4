// What arrived in one UDP datagram, or in several that the kernel merged (UDP GRO): taken apart and
// checked. Everything from here on is bytes from outside.
//
// A packet is delivered only if its ICRC is right. The ICRC of IPv4 packets covers the IP ID, which
// a socket cannot see. Packets of this device have ID 0, or their place in a burst (udp_sender.h);
// with either, all bits are proven. Other senders (Linux rxe, adapters) number freely: their ID is
// solved from the ICRC, which leaves about 15 bits of proof (wire/icrc.h), and about 22 once the
// peer is seen to count (id_sequence.h). It is not done for peers that are known to be this device.
//
// Pure but for the counters, and the clock, which is read for solved IDs only; nothing allocates.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_DATAGRAM_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_DATAGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/id_sequence.h"
#include "transports/soft/link/udp_counts.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/icrc.h"
#include "transports/soft/wire/icrc_cache.h"

namespace verbscope::soft {

// What arrived, and how much of it has been taken.
class Datagram {
 public:
  Datagram() = default;
  // `segment_bytes`: of all packets in it but the last, as the kernel says; 0: it is one packet.
  Datagram(std::span<const std::byte> bytes, size_t segment_bytes)
      : bytes_(bytes), segment_bytes_(segment_bytes == 0 ? bytes.size() : segment_bytes) {}

  // An empty datagram is one packet of no bytes.
  bool done() const { return place_ > 0 && taken_ >= bytes_.size(); }
  // The next packet's place in the datagram, 0 for the first.
  size_t place() const { return place_; }
  std::span<const std::byte> Take();
  size_t packets_left() const;

 private:
  std::span<const std::byte> bytes_;
  size_t segment_bytes_ = 0;
  size_t taken_ = 0;
  size_t place_ = 0;
};

// What a path knows of the packets it gets.
struct ArrivalState {
  Flow flow;                // from the peer; its source port is that of the newest packet
  IcrcCache icrcs;          // of that flow
  bool known = false;       // the flow's source port has been seen
  bool own_device = false;  // the peer numbers as this device does
  bool numbered = false;    // its last burst had IDs 0, 1, 2 …
  IdSequence ids;           // of a foreign sender
  // The weakest that a delivered packet was let in for; none yet: nullopt.
  std::optional<IcrcProof> proof;
};

// Delivers packets, at most `budget` and all that are wrong among them. Returns how many it took.
size_t DeliverPackets(Datagram& datagram, PathId path, ArrivalState& arrivals,
                      PacketReceiver& receiver, size_t budget, Counters& counters,
                      UdpCounts& counts);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_DATAGRAM_H_
