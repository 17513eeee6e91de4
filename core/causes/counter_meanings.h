// What the counters of RDMA devices mean, in plain words: what a rise says, and of which direction.
// Names are those of the kernel's drivers (mlx5, rxe, bnxt_re, efa: drivers/infiniband/hw and sw),
// of the ports (Documentation/ABI/stable/sysfs-class-infiniband) and of their netdevs
// (Documentation/ABI/testing/sysfs-class-net-statistics), as ReadCounters gives them. The same word
// means the same in every driver that has it; where drivers differ the row says so.
//
// Constant data and pure functions; any thread.
#ifndef VERBSCOPE_CORE_CAUSES_COUNTER_MEANINGS_H_
#define VERBSCOPE_CORE_CAUSES_COUNTER_MEANINGS_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/record/record.h"

namespace verbscope {

// What a rise on a side says. "In": of packets on their way to that side.
enum class CounterSign {
  kTraffic,      // work as usual
  kLossIn,       // packets toward this side were lost or reordered
  kLossOut,      // packets from this side were lost or reordered
  kLoss,         // lost, in a direction that this counter does not know
  kStarved,      // this side had no receive posted
  kPeerStarved,  // the other side had none
  kCorrupt,      // packets arrived damaged
  kCongested,    // marked, or slowed down, on the way
  kGaveUp,       // retries used up
  kRefused,      // a request was refused: key, length, rights
  kLink,         // the link went down
  kDropped,      // dropped here, by the device or its netdev, RDMA or not
  kReceived,     // packets of RDMA that arrived here
  kSent,         // packets of RDMA that left here
};

// Whether a rise is a sign of trouble.
bool IsTrouble(CounterSign sign);

struct CounterMeaning {
  std::string_view name;
  CounterSign sign = CounterSign::kTraffic;
  std::string_view meaning;  // half a sentence
};

std::span<const CounterMeaning> CounterMeanings();
// Null for a name that the table does not have.
const CounterMeaning* FindCounter(std::string_view name);

inline constexpr size_t kMaxCounterNotes = 6;

// Those that rose and signal trouble, of both sides, those that say most first; at most
// kMaxCounterNotes.
std::vector<CounterNote> NotesOf(const std::map<std::string, int64_t>& requester,
                                 const std::map<std::string, int64_t>& responder);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CAUSES_COUNTER_MEANINGS_H_
