// wr_id of everything a measuring loop posts: in which queue of which queue pair it lies, and how
// many requests of that queue pair are done when it is. It is valid even in the completion of a
// request that failed, when nothing else of the completion is (ibv_poll_cq(3)).
//
//   bits 0-7 kind, 8-23 index of the queue pair, 24-63 sequence number modulo 2^40
#ifndef VERBSCOPE_CORE_LOOPS_WR_ID_H_
#define VERBSCOPE_CORE_LOOPS_WR_ID_H_

#include <cstddef>
#include <cstdint>

#include "core/plan/plan.h"

namespace verbscope {

enum class WrKind : uint8_t {
  kSend = 1,
  kRecv = 2,
  kCredit = 3,  // tells the sender of receives that were given back (stream.h)
};

inline constexpr uint64_t kWrSequenceMask = (uint64_t{1} << 40) - 1;
static_assert(kMaxQps <= 1 << 16);

constexpr uint64_t MakeWrId(WrKind kind, size_t qp_index = 0, uint64_t sequence = 0) {
  return static_cast<uint64_t>(kind) | uint64_t{qp_index} << 8 | (sequence & kWrSequenceMask) << 24;
}
constexpr WrKind KindOf(uint64_t wr_id) { return static_cast<WrKind>(wr_id & 0xff); }
constexpr size_t QpIndexOf(uint64_t wr_id) { return wr_id >> 8 & 0xffff; }
constexpr uint64_t SequenceOf(uint64_t wr_id) { return wr_id >> 24; }

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_WR_ID_H_
