// An assertion as it is written: METRIC[{key=value,…}] OP VALUE[UNIT] or baseline*FACTOR.
//
//   p99<5us   p99.9{size=64,wait=event}<=12us   bw>=90Gb/s   p99<=baseline*1.05
//
// Parsed before any traffic. Plain data and pure functions, any thread.
#ifndef VERBSCOPE_CORE_GATES_ASSERTION_H_
#define VERBSCOPE_CORE_GATES_ASSERTION_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/gates/metric.h"
#include "core/gates/scope.h"
#include "core/plan/plan.h"

namespace verbscope {

enum class GateOp { kLess, kLessEqual, kGreater, kGreaterEqual, kEqual, kNotEqual };
bool Holds(GateOp op, double value, double limit);
// Whether smaller values satisfy the comparison.
constexpr bool IsUpper(GateOp op) { return op == GateOp::kLess || op == GateOp::kLessEqual; }
constexpr bool IsEquality(GateOp op) { return op == GateOp::kEqual || op == GateOp::kNotEqual; }

struct Assertion {
  std::string text;  // as it was written, without blanks at the ends
  GateMetric metric;
  Scope scope;
  GateOp op = GateOp::kLess;
  double limit = 0;                       // in UnitOf(metric)
  std::optional<double> baseline_factor;  // the limit is this times the baseline's figure
};

inline constexpr size_t kMaxAssertions = 64;
inline constexpr size_t kMaxAssertionBytes = 512;

// kUsage, naming the assertion and what is wrong with it.
Expected<Assertion> ParseAssertion(std::string_view text);

// A file of them, one a line; empty lines and lines that begin with # are skipped. kUsage names the
// line.
Expected<std::vector<Assertion>> ParseAssertions(std::string_view text);

// kUsage if the command's results cannot have the metric, or none can be in the scope. `plan`: null
// for a command without one.
Status CheckAssertion(const Assertion& assertion, std::string_view command, const Plan* plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_GATES_ASSERTION_H_
