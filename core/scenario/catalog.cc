#include "core/scenario/catalog.h"

namespace verbscope {

std::vector<Scenario> ScenariosOf(const Plan& plan) {
  if (plan.command == "imm") return ImmScenarios(plan);
  if (plan.command == "zero-len-recv") return ZeroLenRecvScenarios(plan);
  return {};
}

}  // namespace verbscope
