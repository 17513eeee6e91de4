// Packets that a fault holds back: delayed ones until a time, reordered ones until a few later
// packets of their path have gone or a time has passed, so that the last packet is never lost.
//
// Time is what the caller says. Threads: with the device's lock held. Holding a packet copies it.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_HELD_PACKETS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_HELD_PACKETS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "transports/soft/engine/packet_io.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {

// How many later packets overtake a reordered one, 1 … this, and how long it waits for them.
inline constexpr uint32_t kMaxOvertakers = 4;
inline constexpr uint64_t kReorderWait_ns = 1'000'000;

struct HeldPacket {
  PathId path = kNoPath;
  Header header;
  std::vector<std::byte> payload;  // without pad
  bool corrupt = false;            // what is to be done to it when it goes
  uint64_t release_ns = 0;         // at the latest
  uint32_t overtakers = 0;         // of its path that are still to come; 0: only time counts
};

class HeldPackets {
 public:
  // For more there is no room: the sender has to wait.
  static constexpr size_t kMax = 4096;

  bool Full() const { return packets_.size() >= kMax; }

  void Hold(HeldPacket packet);

  // A packet of `path` has gone: those that waited for it are due.
  void Overtaken(PathId path);

  // Hands over what is due at `now_ns`, in order of its time. take(packet) may refuse one: it
  // stays, and so do all of its path.
  template <class F>
  void Release(uint64_t now_ns, F&& take) {
    std::list<HeldPacket> refused;
    while (Due(now_ns)) {
      // Out of the list first: what is handed over may make others due, or be held again.
      std::list<HeldPacket> one;
      one.splice(one.begin(), packets_, packets_.begin());
      const HeldPacket& packet = one.front();
      const bool blocked = std::any_of(refused.begin(), refused.end(),
                                       [&](const HeldPacket& r) { return r.path == packet.path; });
      if (blocked || !take(packet)) {
        refused.splice(refused.end(), one);
      } else if (packet.overtakers != 0) {
        --waiting_;  // it went because of its time
      }
    }
    packets_.splice(packets_.begin(), refused);
  }
  bool Due(uint64_t now_ns) const {
    return !packets_.empty() && packets_.front().release_ns <= now_ns;
  }

  std::optional<uint64_t> NextRelease() const {
    if (packets_.empty()) return std::nullopt;
    return packets_.front().release_ns;
  }

 private:
  void Insert(std::list<HeldPacket> one);

  std::list<HeldPacket> packets_;  // by release_ns; equal ones in order of arrival
  size_t waiting_ = 0;             // those with overtakers
};

// The payload pieces of a packet as one.
std::vector<std::byte> JoinPieces(PayloadPieces pieces);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_HELD_PACKETS_H_
