// What a side measured at one point, from one or several phases of the same connection: a run that
// is extended goes on where it was, and its result is of all phases together.
//
// Made and used by the session's thread.
#ifndef VERBSCOPE_CORE_SESSION_MEASURED_PARTS_H_
#define VERBSCOPE_CORE_SESSION_MEASURED_PARTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/histogram/histogram.h"
#include "core/histogram/time_blocks.h"
#include "core/loops/interval_recorder.h"
#include "core/plan/operation.h"
#include "core/record/record.h"

namespace verbscope {

// One phase, finished.
struct MeasuredPart {
  IntervalRecorder* latency = nullptr;  // null: measured none; its blocks are taken
  std::optional<BandwidthMetrics> bandwidth = {};
  std::vector<IntervalRow> intervals = {};
  CpuMetrics cpu = {};
  uint64_t samples = 0;
  uint64_t messages = 0;  // that the CPU time was spent on
  double seconds = 0;     // from its first to its last message
  uint64_t late_sends = 0;
  std::map<std::string, int64_t> counters = {};
};

class MeasuredParts {
 public:
  explicit MeasuredParts(const Operation& operation) : operation_(operation) {}

  void Add(MeasuredPart part);
  double seconds() const { return seconds_; }

  // Everything but the warm-up. `offered_per_s`: 0 for a closed loop.
  Metrics ToMetrics(double offered_per_s) const;
  const std::vector<IntervalRow>& intervals() const { return intervals_; }

 private:
  void AddCpu(const CpuMetrics& cpu, double seconds);
  void AddBandwidth(const BandwidthMetrics& bandwidth);

  const Operation& operation_;
  size_t parts_ = 0;
  bool measures_latency_ = false;
  Histogram histogram_;
  TimeBlocks blocks_;
  std::optional<BandwidthMetrics> bandwidth_;
  std::vector<IntervalRow> intervals_;
  CpuMetrics cpu_;
  double account_s_ = 0;  // that the CPU time is of
  double completions_ = 0;
  uint64_t samples_ = 0;
  uint64_t messages_ = 0;
  double seconds_ = 0;
  uint64_t late_sends_ = 0;
  std::map<std::string, int64_t> counters_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_MEASURED_PARTS_H_
