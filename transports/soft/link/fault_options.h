// What the fault policy is asked to do: plain data, filled from the device string or a config file.
// The defaults do nothing.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_OPTIONS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <vector>

namespace verbscope::soft {

enum class FaultAction : uint8_t {
  kDrop,
  kDuplicate,
  kReorder,
  kDelay,
  kCorrupt,
  kStall,  // from this packet on nothing goes in this direction for a while; then all, in order
};

// Seen from the device that injects: packets it sends, packets that come to it.
enum class FaultDirection : uint8_t { kSend, kReceive, kBoth };

// What kind of packet a rule means.
enum class FaultClass : uint8_t {
  kAny,
  kRequest,  // SEND, WRITE, READ request, atomic
  kSend,
  kWrite,
  kRead,  // READ request
  kAtomic,
  kAck,  // positive acknowledge
  kNak,  // RNR and all NAKs
  kReadResponse,
  kAtomicAck,
};

// Hits when every condition holds. Packets are counted per rule, from 1.
struct FaultRule {
  FaultDirection direction = FaultDirection::kBoth;
  FaultClass packets = FaultClass::kAny;
  uint64_t nth = 0;           // only the n-th matching packet; 0: each
  uint64_t transmission = 0;  // only the n-th transmission of a PSN of a QP; 0: each
  uint32_t min_bytes = 0;     // only packets with at least this much payload
  uint64_t hits = 0;          // at most so many; 0: no limit
  FaultAction action = FaultAction::kDrop;
  std::chrono::nanoseconds delay = {};  // for kDelay and kStall
};

struct FaultOptions {
  // Chances for each packet that this device sends, 0 … 1.
  double drop = 0;
  double duplicate = 0;
  double reorder = 0;                   // held back until a few later packets have gone
  double corrupt = 0;                   // one bit flipped under a stale ICRC
  std::chrono::nanoseconds delay = {};  // each packet, 0 none
  uint64_t seed = 1;
  std::vector<FaultRule> rules;

  bool Active() const {
    return drop > 0 || duplicate > 0 || reorder > 0 || corrupt > 0 || delay.count() > 0 ||
           !rules.empty();
  }
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_OPTIONS_H_
