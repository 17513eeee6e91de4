// The lists of scenarios of each command, each in its own file. catalog.h chooses among them.
#ifndef VERBSCOPE_CORE_SCENARIO_LISTS_H_
#define VERBSCOPE_CORE_SCENARIO_LISTS_H_

#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace verbscope {

std::vector<Scenario> ImmScenarios(const Plan& plan);          // imm.cc
std::vector<Scenario> ZeroLenRecvScenarios(const Plan& plan);  // zero_len_recv.cc
std::vector<Scenario> RnrScenarios(const Plan& plan);          // rnr_scenarios.cc
std::vector<Scenario> CqScaleScenarios(const Plan& plan);      // cq_scale.cc
std::vector<Scenario> CqOverrunScenarios(const Plan& plan);    // cq_overrun.cc

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_LISTS_H_
