#include "core/loops/interval_recorder.h"

#include <utility>

#include "core/statistics/rank.h"

namespace verbscope {
namespace {

// Nearest rank; absent when there are too few samples to tell it from the maximum.
std::optional<int64_t> PercentileOf(const Histogram& histogram, Percentile percentile) {
  if (!IsResolved(percentile, histogram.count())) return std::nullopt;
  return histogram.ValueAtRank(NearestRank(percentile, histogram.count())).highest_ns;
}

}  // namespace

IntervalRecorder::IntervalRecorder(TickScale sample_scale, TickScale time_scale,
                                   uint64_t interval_ticks)
    : sample_scale_(sample_scale), time_scale_(time_scale), interval_ticks_(interval_ticks) {
  rows_.reserve(kRowsPerDoubling);
}

void IntervalRecorder::Roll(uint64_t now) {
  const uint64_t interval = interval_ticks_.load(std::memory_order_relaxed);
  boundary_ = now + interval;
  if (full_.load(std::memory_order_acquire) != nullptr) return;
  Slot* const done = active_;
  done->to = now;
  active_ = done == &slots_[0] ? &slots_[1] : &slots_[0];
  active_->from = now;
  full_.store(done, std::memory_order_release);
}

void IntervalRecorder::Fold() {
  Slot* const slot = full_.load(std::memory_order_acquire);
  if (slot == nullptr) return;
  FoldSlot(*slot);
  full_.store(nullptr, std::memory_order_release);
}

void IntervalRecorder::Finish(uint64_t last_ticks) {
  Fold();
  active_->to = last_ticks;
  if (active_->histogram.count() > 0) FoldSlot(*active_);
}

void IntervalRecorder::FoldSlot(Slot& slot) {
  const Histogram& histogram = slot.histogram;
  const auto seconds = [&](uint64_t ticks) {
    return static_cast<double>(time_scale_.Nanoseconds(ticks - start_)) * 1e-9;
  };
  IntervalRow row;
  row.from_s = seconds(slot.from);
  row.to_s = seconds(slot.to);
  row.messages = histogram.count();
  row.p50_ns = PercentileOf(histogram, kP50);
  row.p99_ns = PercentileOf(histogram, kP99);
  if (histogram.count() > 0) row.max_ns = histogram.max();
  rows_.push_back(row);
  if (rows_.size() % kRowsPerDoubling == 0) {
    interval_ticks_.store(interval_ticks_.load(std::memory_order_relaxed) * 2,
                          std::memory_order_relaxed);
  }
  total_.Merge(histogram);
  blocks_.Add(row.from_s, row.to_s, histogram);
  slot.histogram.Reset();
}

}  // namespace verbscope
