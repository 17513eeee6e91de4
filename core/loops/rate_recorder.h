// Where a bandwidth loop counts: messages of the whole phase and a row per interval, without ever
// allocating. A phase with more rows than there is room for joins them in pairs and goes on with
// intervals of twice the length.
//
// One thread: the measuring one during the phase, its owner afterwards.
#ifndef VERBSCOPE_CORE_LOOPS_RATE_RECORDER_H_
#define VERBSCOPE_CORE_LOOPS_RATE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/clock/tick_scale.h"
#include "core/record/record.h"

namespace verbscope {

class RateRecorder {
 public:
  static constexpr size_t kRows = 1024;

  // `scale` turns ticks into ns; a message carries `message_bytes`.
  RateRecorder(TickScale scale, uint64_t interval_ticks, uint64_t message_bytes);

  // Times do not go back.
  bool started() const { return started_; }
  void Start(uint64_t now) {
    started_ = true;
    start_ = from_ = last_ = now;
    boundary_ = now + interval_ticks_;
  }
  void Count(uint64_t now, uint64_t messages) {
    total_ += messages;
    in_row_ += messages;
    last_ = now;
    if (now >= boundary_) [[unlikely]] {
      Roll(now);
    }
  }

  uint64_t messages() const { return total_; }
  // From Start to the last Count.
  BandwidthMetrics Total() const;
  // What came since the last full interval is a shorter row at the end, or, if that is less than
  // half an interval, part of the last one.
  std::vector<IntervalRow> Rows() const;

 private:
  struct Row {
    uint64_t from = 0;
    uint64_t to = 0;
    uint64_t messages = 0;
  };

  void Roll(uint64_t now);
  double Seconds(uint64_t ticks) const {
    return static_cast<double>(scale_.Nanoseconds(ticks)) * 1e-9;
  }
  std::optional<double> GbitPerS(uint64_t messages, double seconds) const;

  const TickScale scale_;
  const uint64_t message_bytes_;
  uint64_t interval_ticks_;
  bool started_ = false;
  uint64_t start_ = 0;
  uint64_t from_ = 0;
  uint64_t last_ = 0;
  uint64_t boundary_ = UINT64_MAX;
  uint64_t total_ = 0;
  uint64_t in_row_ = 0;
  std::vector<Row> rows_;  // room for kRows from the start
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_RATE_RECORDER_H_
