// The ICRCs of one direction of one flow, for the fast path. What stands in front of the BTH
// differs between the packets of a flow only in length and IPv4 ID (and, of what arrives, in the
// source port), so the CRC state behind it is kept for those seen last.
//
// Owned by whoever owns the flow; one thread at a time. Nothing allocates.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_WIRE_ICRC_CACHE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_WIRE_ICRC_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/soft/wire/frame.h"

namespace verbscope::soft {

class IcrcCache {
 public:
  // As TransportIcrc. All calls must have the same addresses in `flow`; the port may change.
  uint32_t Of(const Flow& flow, std::span<const std::byte> transport, uint16_t ipv4_id = 0) {
    // The packets of a burst have one length and count their IDs: each finds a place of its own.
    Entry& entry = entries_[(ipv4_id ^ transport.size() / 4) % entries_.size()];
    const uint64_t key = uint64_t{1} << 48 | uint64_t{flow.source_port} << 32 |
                         uint64_t{ipv4_id} << 16 | transport.size();
    if (entry.key != key) [[unlikely]] {
      entry = {.key = key, .icrc = HeadersIcrc(flow, transport.size(), ipv4_id)};
    }
    return ExtendByTransport(entry.icrc, transport);
  }

 private:
  // Port, ID and length (which an IP packet has 16 bits for), and a bit that says it is set.
  struct Entry {
    uint64_t key = 0;
    uint32_t icrc = 0;
  };
  std::array<Entry, 64> entries_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_WIRE_ICRC_CACHE_H_
