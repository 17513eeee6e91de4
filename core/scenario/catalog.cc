#include "core/scenario/catalog.h"

#include "core/checks/catalog.h"
#include "core/plan/check_plan.h"
#include "core/plan/cq_plan.h"
#include "core/plan/rnr_plan.h"
#include "core/scenario/lists.h"

namespace verbscope {

std::vector<Scenario> ScenariosOf(const Plan& plan) {
  if (plan.command == "imm") return ImmScenarios(plan);
  if (plan.command == "zero-len-recv") return ZeroLenRecvScenarios(plan);
  if (plan.command == kRnrTest) return RnrScenarios(plan);
  if (plan.command == kCqScale) return CqScaleScenarios(plan);
  if (plan.command == kCheck) return CheckScenarios(plan);
  if (plan.command == kCqOverrun) return CqOverrunScenarios(plan);
  return {};
}

}  // namespace verbscope
