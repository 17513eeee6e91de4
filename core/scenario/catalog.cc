#include "core/scenario/catalog.h"

#include "core/plan/cq_plan.h"
#include "core/plan/rnr_plan.h"

namespace verbscope {

std::vector<Scenario> ScenariosOf(const Plan& plan) {
  if (plan.command == "imm") return ImmScenarios(plan);
  if (plan.command == "zero-len-recv") return ZeroLenRecvScenarios(plan);
  if (plan.command == kRnrTest) return RnrScenarios(plan);
  if (plan.command == kCqScale) return CqScaleScenarios(plan);
  if (plan.command == kCqOverrun) return CqOverrunScenarios(plan);
  return {};
}

}  // namespace verbscope
