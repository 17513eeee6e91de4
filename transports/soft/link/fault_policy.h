// Decides which packets meet with an accident, as fault_options.h asks for: the same packets and
// the same seed give the same decisions. It knows neither time nor packets' bytes; fault_sink.h and
// fault_receiver.h do what it says.
//
// A packet has at most one accident: the first rule of the list that hits, else (sent packets only)
// the first of drop, corrupt, duplicate, reorder whose chance comes. The delay of all packets comes
// on top, unless a rule delays the packet itself. Every rule counts every packet that it matches,
// also those that another rule takes.
//
// Transmissions of a PSN are counted per direction, path, destination QP and kind (requests,
// responses), for the newest 2^16 PSNs, and never forgotten when a QP starts anew.
//
// Threads: with the device's lock held. Allocates only for rules about transmissions.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_POLICY_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_POLICY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/fault_options.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {

// Accidents so far, by action. A packet that only the delay of all packets held counts as delayed.
struct FaultCounts {
  uint64_t dropped = 0;
  uint64_t duplicated = 0;
  uint64_t reordered = 0;
  uint64_t delayed = 0;
  uint64_t corrupted = 0;
  uint64_t stalled = 0;  // stalls, not packets

  bool operator==(const FaultCounts&) const = default;
};

// Calls f(name, value) for each count.
template <class F>
void ForEach(const FaultCounts& counts, F&& f) {
  f(std::string_view("dropped"), counts.dropped);
  f(std::string_view("duplicated"), counts.duplicated);
  f(std::string_view("reordered"), counts.reordered);
  f(std::string_view("delayed"), counts.delayed);
  f(std::string_view("corrupted"), counts.corrupted);
  f(std::string_view("stalled"), counts.stalled);
}

struct FaultVerdict {
  std::optional<FaultAction> action;  // kDelay too, if `delay_ns` is all there is
  uint64_t delay_ns = 0;
  uint64_t stall_ns = 0;  // for kStall; the packet may have a delay too
};

class FaultPolicy {
 public:
  explicit FaultPolicy(const FaultOptions& options);
  FaultPolicy(const FaultPolicy&) = delete;
  FaultPolicy& operator=(const FaultPolicy&) = delete;

  // Judges one packet and counts it. `direction`: kSend or kReceive.
  FaultVerdict Judge(FaultDirection direction, PathId path, const Header& header,
                     size_t payload_bytes);
  // 0 … bound - 1, from the seed.
  uint64_t Random(uint64_t bound) { return random_() % bound; }

  // The clock of Tick. Without one a packet's time counts from the last Tick, which may be long ago
  // on a busy machine: what was to be delayed would then leave too early.
  void SetClock(uint64_t (*clock)()) { clock_ = clock; }
  // The time, not before `last_tick`.
  uint64_t Now(uint64_t last_tick) const {
    return clock_ != nullptr ? std::max(clock_(), last_tick) : last_tick;
  }

  const FaultCounts& counts() const { return counts_; }

 private:
  struct Rule {
    FaultRule fault;
    uint64_t seen = 0;
    uint64_t hits = 0;
  };
  // How often each PSN was seen, of the newest ones of one QP and direction.
  struct Transmissions {
    std::unordered_map<uint32_t, uint64_t> counts;
    uint32_t newest = 0;
  };
  // Direction, whether responses, path, destination QPN.
  using FlowKey = std::tuple<FaultDirection, bool, PathId, uint32_t>;

  uint64_t CountTransmission(FaultDirection direction, PathId path, const Header& header);
  const FaultRule* MatchRules(FaultDirection direction, const Header& header, size_t payload_bytes,
                              uint64_t transmission);
  std::optional<FaultAction> Draw();
  bool Chance(double probability);
  void Count(FaultAction action);

  const FaultOptions options_;
  uint64_t (*clock_)() = nullptr;
  std::vector<Rule> rules_;
  bool counts_transmissions_ = false;
  std::mt19937_64 random_;
  std::map<FlowKey, Transmissions> transmissions_;
  FaultCounts counts_;
};

// Whether a rule for `packets` means a packet with this header.
bool Matches(FaultClass packets, const Header& header);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_FAULT_POLICY_H_
