// What came of comparing two sets of reports. Plain data, any thread.
//
// The unit is the run: a figure of a set is one number per run, and what is uncertain about it is
// how much runs differ.
#ifndef VERBSCOPE_CORE_RECORD_COMPARISON_H_
#define VERBSCOPE_CORE_RECORD_COMPARISON_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/record/point.h"

namespace verbscope {

// One metric of one result.
struct ComparisonRow {
  Point point;  // of the base
  std::string side;
  std::string metric;  // "p50", "p99", "p99.9", "bw", "msgrate", "mean", "max", "cpu"
  std::string unit;    // "ns", "Gb/s", "/s", "%"
  bool gated = false;  // whether it counts for the exit code
  uint32_t base_runs = 0;
  uint32_t new_runs = 0;
  std::optional<double> base = {};   // median of the runs
  std::optional<double> fresh = {};  // likewise, of the new set
  // New over base by Hodges and Lehmann, with its two-sided 95 % interval.
  std::optional<double> ratio = {};
  std::optional<double> ratio_low = {};
  std::optional<double> ratio_high = {};
  double margin = 0;  // a share of base: 0.03; smaller changes are none
  // Exact, one-sided, of "no worse than the margin"; gated rows: after Holm.
  std::optional<double> p_worse = {};
  // "worse", "better", "same" (proven to lie within the margin), "undecided"
  std::string verdict = "undecided";
  std::optional<uint64_t> runs_needed = {};  // of each set, in all; undecided only
  std::string why = {};                      // a sentence where the figures do not say it
  friend bool operator==(const ComparisonRow&, const ComparisonRow&) = default;
};

// Where the distribution moved: medians of the runs' quantiles.
struct ShiftRow {
  Point point;
  std::string side;
  std::string percent;  // "10" … "90", "99", "99.9", "99.99"
  int64_t base_ns = 0;
  int64_t fresh_ns = 0;
  friend bool operator==(const ShiftRow&, const ShiftRow&) = default;
};

// What differs between the sets besides what was measured.
struct SetDifference {
  std::string field;  // "local.device.firmware", "plan.qps"
  std::string base;   // several values: joined by commas
  std::string fresh;
  friend bool operator==(const SetDifference&, const SetDifference&) = default;
};

struct Comparison {
  std::string base_name = {};  // files, or the options of set A
  std::string new_name = {};
  std::vector<SetDifference> environment = {};
  std::vector<SetDifference> parameters = {};  // those that were allowed
  std::vector<ComparisonRow> rows = {};
  std::vector<ShiftRow> shifts = {};
  std::vector<std::string> causes = {};     // counters that moved, whole sentences
  std::vector<std::string> unmatched = {};  // results of one set only, whole sentences
  friend bool operator==(const Comparison&, const Comparison&) = default;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_COMPARISON_H_
