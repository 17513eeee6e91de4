// Two sets of reports: whether the second is worse, better, the same, or whether that cannot be
// told yet.
//
//   Expected<Comparison> comparison = Compare(base, fresh, {.base_files = {"a.json"}, …});
//
// The unit is the run: each run of each report is one figure per metric. What differs besides is
// listed; parameters that differ are an error unless they were allowed to. Pure function of
// finished records, which it only reads; any thread.
#ifndef VERBSCOPE_CORE_COMPARE_COMPARE_H_
#define VERBSCOPE_CORE_COMPARE_COMPARE_H_

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/compare/differences.h"
#include "core/record/record.h"

namespace verbscope {

// Changes that are none, as shares of the base.
struct Margins {
  static constexpr double kDefault = 0.03;
  double share = kDefault;
  std::map<std::string, double> by_metric = {};  // instead of it: {"p99", 0.05}
};
// "3", "p99=5", "p99.9=10": percent, 0 … 1000. Later ones replace earlier ones. kUsage otherwise.
Expected<Margins> ParseMargins(const std::vector<std::string>& texts);

struct CompareOptions {
  // For messages and the comparison's names; as many as records, or none.
  std::vector<std::string> base_files = {};
  std::vector<std::string> new_files = {};
  AllowedDifferences allowed = {};
  Margins margins = {};
  // The sets differ in what was asked for, and that is the question: the n-th point of one belongs
  // to the n-th of the other. Parameters are listed and never refused.
  bool join_by_order = false;
};

// Fails, kUsage, naming the file: no results, a run that broke, different commands, parameters that
// differ, or no result in common.
Expected<Comparison> Compare(std::span<const Record> base, std::span<const Record> fresh,
                             const CompareOptions& options);

// What a comparison comes to.
bool AnyWorse(const Comparison& comparison);      // a gated metric is proven worse
bool AnyUndecided(const Comparison& comparison);  // a gated one is not decided, or there is none
// The verdict and exit code of a record whose comparison is filled.
void JudgeComparison(bool require_decision, Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_COMPARE_H_
