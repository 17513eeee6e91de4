#include "core/plan/check_plan.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include "core/plan/input_text.h"

namespace verbscope {

int64_t CheckPlannedNs(const Plan& plan) {
  constexpr int64_t kOneNs = 3'000'000'000;
  const size_t checks = plan.checks.empty() ? kCheckNames.size() : plan.checks.size();
  return static_cast<int64_t>(checks) * kOneNs;
}

Status CheckNamesOf(const Plan& plan) {
  if (plan.command != kCheck && !plan.checks.empty()) {
    return Fail(UsageError(fmt::format("checks: {} runs no named checks", plan.command), {},
                           "leave them out"));
  }
  for (const std::string& name : plan.checks) {
    if (IsCheckName(name)) continue;
    return Fail(UsageError(fmt::format("there is no check {}", Quoted(name)),
                           fmt::format("the checks are {}", fmt::join(kCheckNames, ", ")),
                           "see verbscope check --list"));
  }
  return {};
}

}  // namespace verbscope
