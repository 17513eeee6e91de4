// event-vs-poll: the same work under other ways of waiting.
#include <string>

#include "cmd/commands.h"
#include "cmd/plan_command.h"
#include "core/plan/mode_plan.h"

namespace verbscope {

Command AddEventVsPoll(CLI::App& app, DeviceProvider& provider) {
  return AddPlanCommand(app, provider, std::string(kEventVsPoll),
                        "event-driven against busy-poll completion: latency, CPU time and "
                        "wake-ups, at several loads",
                        AddModeOptions);
}

}  // namespace verbscope
