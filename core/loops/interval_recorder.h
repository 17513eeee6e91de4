// Where a measuring loop puts its samples: a histogram of the whole phase and a row per interval,
// without the loop ever merging, allocating or formatting.
//
// Two histograms take turns. The measuring thread records into one; at an interval's end it hands
// it over with one atomic store and goes on in the other. The control thread folds the full one
// into the total, makes the row, clears it and gives it back. If it has not come round to that yet,
// the running interval is simply longer: rows carry their own start and end.
//
// Threads: Start and Record by the measuring thread; Fold by the control thread; Finish and what
// follows by one thread after the loop has returned and no Fold can run any more.
#ifndef VERBSCOPE_CORE_LOOPS_INTERVAL_RECORDER_H_
#define VERBSCOPE_CORE_LOOPS_INTERVAL_RECORDER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/clock/tick_scale.h"
#include "core/histogram/histogram.h"
#include "core/histogram/time_blocks.h"
#include "core/record/record.h"

namespace verbscope {

class IntervalRecorder {
 public:
  // After this many rows the interval doubles, so that a long run cannot grow the report without
  // bound: 1,000 rows, then 1,000 of twice the length, and so on.
  static constexpr size_t kRowsPerDoubling = 1000;

  // `sample_scale` turns the ticks of a sample into the nanoseconds that are recorded (half of them
  // for a half round trip); `time_scale` turns ticks into time. 1 ms <= interval.
  IntervalRecorder(TickScale sample_scale, TickScale time_scale, uint64_t interval_ticks);

  void Start(uint64_t now) {
    start_ = now;
    active_->from = now;
    boundary_ = now + interval_ticks_.load(std::memory_order_relaxed);
  }

  void Record(uint64_t now, uint64_t ticks) {
    active_->histogram.Record(sample_scale_.Nanoseconds(ticks));
    if (now >= boundary_) [[unlikely]] {
      Roll(now);
    }
  }

  // Takes over a finished interval, if there is one. A few microseconds; never blocks the loop.
  void Fold();

  // Folds what is left. `last_ticks` is the clock at the last sample.
  void Finish(uint64_t last_ticks);
  const Histogram& total() const { return total_; }
  TimeBlocks TakeBlocks() { return std::move(blocks_); }
  std::vector<IntervalRow> TakeRows() { return std::move(rows_); }

 private:
  struct Slot {
    Histogram histogram;
    uint64_t from = 0;
    uint64_t to = 0;
  };

  void Roll(uint64_t now);
  void FoldSlot(Slot& slot);

  const TickScale sample_scale_;
  const TickScale time_scale_;
  std::array<Slot, 2> slots_;
  // Measuring thread.
  Slot* active_ = &slots_[0];
  uint64_t boundary_ = UINT64_MAX;
  uint64_t start_ = 0;
  // Between the two: the slot that waits to be folded, or null.
  std::atomic<Slot*> full_ = nullptr;
  std::atomic<uint64_t> interval_ticks_;
  // Control thread, then the owner.
  Histogram total_;
  TimeBlocks blocks_;
  std::vector<IntervalRow> rows_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_INTERVAL_RECORDER_H_
