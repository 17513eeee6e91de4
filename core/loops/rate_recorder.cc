#include "core/loops/rate_recorder.h"

namespace verbscope {

RateRecorder::RateRecorder(TickScale scale, uint64_t interval_ticks, uint64_t message_bytes)
    : scale_(scale), message_bytes_(message_bytes), interval_ticks_(interval_ticks) {
  rows_.reserve(kRows);
}

void RateRecorder::Roll(uint64_t now) {
  if (rows_.size() == kRows) {
    for (size_t i = 0; i < kRows / 2; ++i) {
      const Row& first = rows_[2 * i];
      const Row& second = rows_[2 * i + 1];
      rows_[i] = {
          .from = first.from, .to = second.to, .messages = first.messages + second.messages};
    }
    rows_.resize(kRows / 2);
    interval_ticks_ *= 2;
  }
  rows_.push_back({.from = from_, .to = now, .messages = in_row_});
  from_ = now;
  in_row_ = 0;
  boundary_ = now + interval_ticks_;
}

std::optional<double> RateRecorder::GbitPerS(uint64_t messages, double seconds) const {
  if (seconds <= 0 || message_bytes_ == 0) return std::nullopt;
  return static_cast<double>(messages) * static_cast<double>(message_bytes_) * 8e-9 / seconds;
}

BandwidthMetrics RateRecorder::Total() const {
  BandwidthMetrics metrics;
  metrics.messages = total_;
  metrics.bytes = total_ * message_bytes_;
  metrics.seconds = Seconds(last_ - start_);
  metrics.gbit_per_s = GbitPerS(total_, metrics.seconds);
  if (metrics.seconds > 0) metrics.msg_per_s = static_cast<double>(total_) / metrics.seconds;
  return metrics;
}

std::vector<IntervalRow> RateRecorder::Rows() const {
  std::vector<IntervalRow> rows;
  const auto add = [&](const Row& row) {
    IntervalRow interval;
    interval.from_s = Seconds(row.from - start_);
    interval.to_s = Seconds(row.to - start_);
    interval.messages = row.messages;
    interval.gbit_per_s = GbitPerS(row.messages, interval.to_s - interval.from_s);
    rows.push_back(interval);
  };
  if (in_row_ == 0) {
    for (const Row& row : rows_) add(row);
    return rows;
  }
  // What was in flight at the end completes within a moment: its own row would have a rate that
  // never was.
  const bool joins = !rows_.empty() && last_ - from_ < interval_ticks_ / 2;
  for (size_t i = 0; i + (joins ? 1 : 0) < rows_.size(); ++i) add(rows_[i]);
  Row tail = {.from = from_, .to = last_, .messages = in_row_};
  if (joins) {
    tail.from = rows_.back().from;
    tail.messages += rows_.back().messages;
  }
  add(tail);
  return rows;
}

}  // namespace verbscope
