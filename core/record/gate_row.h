// What came of an assertion. Plain data, any thread.
#ifndef VERBSCOPE_CORE_RECORD_GATE_ROW_H_
#define VERBSCOPE_CORE_RECORD_GATE_ROW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/record/point.h"

namespace verbscope {

// The judgement of one figure. Values are in the unit of the row.
struct GateOutcome {
  std::string status = {};  // "pass", "fail", "inconclusive"
  std::optional<double> observed = {};
  // Of a percentile or a mean: the one-sided 95 % bound that decided, or that stands in the way of
  // passing. Of an exact figure: the figure.
  std::optional<double> bound = {};
  std::optional<double> limit = {};  // what it was compared with; absent: no baseline for it
  std::optional<uint64_t> samples = {};
  std::optional<uint64_t> effective_samples = {};
  // In all, of samples that come as these did; absent: it is decided, or no number would.
  std::optional<uint64_t> samples_needed = {};
  std::string why = {};  // a sentence where status and figures do not say it
  friend bool operator==(const GateOutcome&, const GateOutcome&) = default;
};

// The same of one result.
struct GateResult {
  Point point;
  std::string side;
  uint32_t run = 0;
  GateOutcome outcome = {};
  friend bool operator==(const GateResult&, const GateResult&) = default;
};

// One assertion: every result in its scope must satisfy it.
struct GateRow {
  std::string expression;    // as it was written
  std::string unit = {};     // "ns", "Gb/s", "/s", "%"; empty: a number of things
  GateOutcome outcome = {};  // of the worst of its results, or why there is none
  std::vector<GateResult> results = {};
  friend bool operator==(const GateRow&, const GateRow&) = default;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_GATE_ROW_H_
