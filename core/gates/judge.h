// Judging a finished run by its assertions. Three outcomes: pass and fail are said when the
// figure's one-sided 95 % bound lies on that side of the limit, else the samples are too few to
// say, and the row tells how many would do.
//
//  - Percentiles: rank bounds (core/statistics/rank.h) at the effective sample count, widened to
//    the edges of their buckets.
//  - The mean: Student's t in its large-sample form, at the least effective count of all reported
//    percentiles, from 30 effective samples on.
//  - All others are facts of the run: minimum, maximum, deviation, bandwidth, rates, counts.
//
// Each result within the scope that the metric is about is judged for itself, and all must pass.
// What is not there fails: an assertion never passes for want of data. A result of a run that broke
// may fail, it cannot pass.
//
// Pure functions on plain data, any thread.
#ifndef VERBSCOPE_CORE_GATES_JUDGE_H_
#define VERBSCOPE_CORE_GATES_JUDGE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/gates/assertion.h"
#include "core/record/record.h"

namespace verbscope {

// What an inconclusive gate makes of the run. kExtend measures on, then it is as kReport.
enum class OnInconclusive { kReport, kFail, kPass, kExtend };
Expected<OnInconclusive> ParseOnInconclusive(std::string_view text);

struct Gates {
  std::vector<Assertion> assertions;
  std::vector<Record> baselines;  // what `baseline` stands for: medians of their runs
  OnInconclusive on_inconclusive = OnInconclusive::kReport;
};

// One row per assertion, in their order.
std::vector<GateRow> Judge(const Gates& gates, const Record& record);

// The same of some results of a run that goes on, without the rows that are about none of them.
std::vector<GateRow> Judge(const Gates& gates, std::span<const Result> results);

// "pass", "fail", "inconclusive": of all rows together, by the policy.
std::string_view VerdictOf(std::span<const GateRow> gates, OnInconclusive policy);

// Adds what came of record.gates to the verdict and exit code of a run that did not break. A check
// that failed, or said nothing, weighs as much as an assertion.
void CountGates(OnInconclusive policy, Record& record);

// How much longer, in ns, a point that was measured for `measured_ns` should be measured until its
// inconclusive rows are likely decided, at most until `longest_ns` in all. 0: not at all.
int64_t MoreNs(std::span<const GateRow> gates, int64_t measured_ns, int64_t longest_ns);

// What is wrong with the baselines for such assertions and command, before any traffic: none given,
// or of another command, or of a run that broke. kUsage.
Status CheckBaselines(const Gates& gates, std::string_view command);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_GATES_JUDGE_H_
