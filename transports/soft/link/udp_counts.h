// What a UDP link has counted, beyond what the device counts (engine/counters.h). Plain numbers,
// changed with the device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_COUNTS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_COUNTS_H_

#include <cstdint>
#include <optional>

#include "transports/soft/wire/icrc.h"

namespace verbscope::soft {

struct UdpCounts {
  uint64_t unknown_source = 0;  // packets from an address that is no connected path; dropped
  uint64_t ecn_marked = 0;      // packets that arrived with ECN "congestion experienced"
  uint64_t cnps = 0;            // congestion notification packets; taken note of, not acted on
  uint64_t id_recovered = 0;    // packets whose IPv4 ID had to be solved from their ICRC
  uint64_t placed = 0;          // packets of bursts taken apart: the ID is one of 64, 26 bits
  uint64_t bursts = 0;          // sends of several packets at once (UDP GSO)
  uint64_t bursts_refused = 0;  // those that the system would not do; sent one by one instead
  uint64_t blocked = 0;         // flushes that the system had no room for
  uint64_t receive_drops = 0;   // by the system: a receive buffer was full, or a UDP checksum wrong
  std::optional<IcrcProof> proof;  // the weakest of all packets; nullopt: none has come
  int last_send_errno = 0;         // of the last packet that was counted as send_err
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_COUNTS_H_
