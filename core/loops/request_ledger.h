// Which requests are in flight, for several threads that take each other's completions: each
// request is put down before it is posted and crossed out once when its completion is taken. What
// is crossed out without having been put down was never posted, or completed twice; what stays was
// lost.
//
// Each queue pair has `depth` lines; request number n stands in line n % depth, so that the next of
// a line is n + depth. Lines are independent: whoever takes the completion of a request posts the
// next of its line, and no two threads ever write one line at the same time unless the device
// delivers a completion twice, which is then seen.
//
// Any thread, without locks. Open is released by the post that follows it: the thread that takes
// the completion acquires it through the device, as it does the data.
#ifndef VERBSCOPE_CORE_LOOPS_REQUEST_LEDGER_H_
#define VERBSCOPE_CORE_LOOPS_REQUEST_LEDGER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/loops/wr_id.h"

namespace verbscope {

class RequestLedger {
 public:
  // `depth` is 1 or more.
  RequestLedger(size_t qps, uint32_t depth)
      : depth_(depth), lines_(new std::atomic<uint64_t>[qps * depth]()), count_(qps * depth) {}

  // Numbers as in wr_id.h, modulo 2^40.
  void Open(size_t qp, uint64_t number) {
    Line(qp, number).store((number & kWrSequenceMask) + 1, std::memory_order_relaxed);
  }
  // False: it is not in flight.
  bool Close(size_t qp, uint64_t number) {
    uint64_t expected = (number & kWrSequenceMask) + 1;
    return Line(qp, number).compare_exchange_strong(expected, 0, std::memory_order_relaxed);
  }

  // Of all queue pairs. Only while no thread works.
  uint64_t in_flight() const {
    uint64_t open = 0;
    for (size_t i = 0; i < count_; ++i) {
      open += lines_[i].load(std::memory_order_relaxed) != 0 ? 1 : 0;
    }
    return open;
  }
  uint32_t depth() const { return depth_; }
  // The first number of a phase: far from those of other phases, so that a completion that comes a
  // phase late is one too many.
  uint64_t FirstNumber(uint32_t phase) const { return kNumbersPerPhase / depth_ * depth_ * phase; }

  // At 100 million requests per second and queue pair, eleven minutes.
  static constexpr uint64_t kNumbersPerPhase = uint64_t{1} << 36;
  static constexpr uint32_t kPhases = 8;
  static_assert(kNumbersPerPhase * kPhases <= kWrSequenceMask, "a number must fit a wr_id");

 private:
  std::atomic<uint64_t>& Line(size_t qp, uint64_t number) {
    return lines_[qp * depth_ + number % depth_];
  }

  const uint32_t depth_;
  const std::unique_ptr<std::atomic<uint64_t>[]> lines_;  // number + 1, or 0
  const size_t count_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_REQUEST_LEDGER_H_
