// From the values of two sets of runs to a verdict. Everything is done with logarithms, so that a
// change is a ratio. Pure functions, any thread.
//
//   worse      the test of "no worse than the margin" rejects, after Holm's correction
//   better     the same the other way round
//   same       both tests of "outside the margin" reject: the 95 % interval lies within it
//   undecided  neither
//
// No two of the first three can hold at once: each wants more than half of all pairs of runs on its
// own part of the scale.
#ifndef VERBSCOPE_CORE_COMPARE_VERDICT_H_
#define VERBSCOPE_CORE_COMPARE_VERDICT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/record/comparison.h"
#include "core/statistics/rank_sum.h"

namespace verbscope {

// Chance of a false "worse" anywhere in a comparison, and of a false "better".
inline constexpr double kChangeLevel = 0.05;
// Of each of the two tests of "same".
inline constexpr double kSameLevel = 0.025;
// Of each set, for any verdict.
inline constexpr size_t kMinRuns = 5;

// What the values of one metric say before it is known how many are judged with it.
struct Evidence {
  bool less_is_better = true;
  // The rest is there only with a test: enough runs, all values above 0.
  bool tested = false;
  double shift = 0;  // ln(new / base)
  std::optional<double> low;
  std::optional<double> high;
  double p_worse = 1;
  double p_better = 1;
  double p_outside = 1;  // the larger of both tests of "same"
};

// Keeps the distributions it has worked out: most rows have as many runs as their neighbours. One
// thread.
class Judge {
 public:
  // Fills runs, medians, ratio with interval and margin of `row`; a `why` where there is no test.
  // Needs a value of each set; `margin` at least 0.
  Evidence Weigh(const std::vector<double>& base, const std::vector<double>& fresh, double margin,
                 bool less_is_better, ComparisonRow& row);

 private:
  const RankSumNull& Null(size_t n, size_t m);

  std::map<std::pair<size_t, size_t>, RankSumNull> nulls_;
};

// Verdict, p_worse and runs_needed of each row, of the same order. Gated rows are corrected for
// their number; the others stand for themselves.
void Decide(const std::vector<Evidence>& evidence, std::vector<ComparisonRow>& rows);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_VERDICT_H_
