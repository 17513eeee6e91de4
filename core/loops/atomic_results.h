// What an Atomic returns, checked for each one. With one initiator every value is known beforehand:
// the n-th Atomic finds n in its target and leaves n + 1 there, by adding 1 or by swapping
// (InfiniBand Architecture Specification vol. 1, 9.4.5). A result slot is overwritten before its
// request goes, so that a device that returns nothing is found out too.
//
// Part of the fast path of round_trip.h and open_loop.h; inline, no state of its own.
#ifndef VERBSCOPE_CORE_LOOPS_ATOMIC_RESULTS_H_
#define VERBSCOPE_CORE_LOOPS_ATOMIC_RESULTS_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "core/loops/loop.h"
#include "core/plan/plan.h"

namespace verbscope {

// Where results land and what comes next; outlives a phase.
struct AtomicSlots {
  uint64_t* slots = nullptr;  // registered; null: the operation is no Atomic
  uint32_t count = 1;         // at least the number in flight
  ibv_sge* sge = nullptr;     // of the request
  uint64_t posted = 0;
  uint64_t checked = 0;
};

// For operations whose result is not looked at.
struct NoResults {
  void Prepare(ibv_send_wr& /*request*/) {}
  bool Check(LoopCounts& /*counts*/) { return true; }
};

template <AtomicOp kOp>
class AtomicResults {
 public:
  explicit AtomicResults(AtomicSlots& slots) : slots_(slots) {}

  // Before the request is posted.
  void Prepare(ibv_send_wr& request) {
    uint64_t* const slot = Slot(slots_.posted);
    __atomic_store_n(slot, ~slots_.posted, __ATOMIC_RELAXED);
    slots_.sge->addr = reinterpret_cast<uintptr_t>(slot);
    if constexpr (kOp == AtomicOp::kCompareSwap) {
      request.wr.atomic.compare_add = slots_.posted;
      request.wr.atomic.swap = slots_.posted + 1;
    }
    ++slots_.posted;
  }

  // After its completion.
  bool Check(LoopCounts& counts) {
    const uint64_t got = __atomic_load_n(Slot(slots_.checked), __ATOMIC_ACQUIRE);
    if (got != slots_.checked) [[unlikely]] {
      counts.end = LoopEnd::kMismatch;
      counts.mismatch = {.kind = LoopMismatch::Kind::kAtomicResult,
                         .message = slots_.checked + 1,
                         .expected = slots_.checked,
                         .got = got};
      return false;
    }
    ++slots_.checked;
    return true;
  }

 private:
  uint64_t* Slot(uint64_t n) const { return slots_.slots + n % slots_.count; }

  AtomicSlots& slots_;
};

// Calls `run` with a maker of the results of the operation: chosen once, before the loop.
template <class Run>
auto WithResults(AtomicSlots* slots, AtomicOp op, Run run) {
  if (slots == nullptr) return run([] { return NoResults(); });
  if (op == AtomicOp::kFetchAdd) {
    return run([slots] { return AtomicResults<AtomicOp::kFetchAdd>(*slots); });
  }
  return run([slots] { return AtomicResults<AtomicOp::kCompareSwap>(*slots); });
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_ATOMIC_RESULTS_H_
