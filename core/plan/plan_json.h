// Plan and PeerSettings as JSON, both ways. Used on the control channel, where the bytes come from
// another host, and in the report. Unknown members are ignored (a newer peer may know more); a
// member of the wrong type or outside its range is an error that names it. Free functions, any
// thread.
#ifndef VERBSCOPE_CORE_PLAN_PLAN_JSON_H_
#define VERBSCOPE_CORE_PLAN_PLAN_JSON_H_

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/plan/plan.h"

namespace verbscope {

nlohmann::json ToJson(const Plan& plan);
// Parsed and validated: a Plan that comes back is within every range of plan.h.
Expected<Plan> PlanFromJson(const nlohmann::json& json);

nlohmann::json ToJson(const PeerSettings& settings);
Expected<PeerSettings> PeerSettingsFromJson(const nlohmann::json& json);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_PLAN_JSON_H_
