#include "core/scenario/catalog.h"

namespace verbscope {

std::vector<Scenario> ZeroLenRecvScenarios(const Plan&) { return {}; }

}  // namespace verbscope
