// Which scenarios a command runs, in order. The same plan gives the same list on both sides.
#ifndef VERBSCOPE_CORE_SCENARIO_CATALOG_H_
#define VERBSCOPE_CORE_SCENARIO_CATALOG_H_

#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace verbscope {

// Empty for a command without scenarios. Needs a plan that CheckCombination accepts.
std::vector<Scenario> ScenariosOf(const Plan& plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_CATALOG_H_
