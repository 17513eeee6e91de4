// A command that carries a plan to its peer: options in, document out. The commands differ in their
// options only.
#ifndef VERBSCOPE_CMD_PLAN_COMMAND_H_
#define VERBSCOPE_CMD_PLAN_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "cmd/commands.h"
#include "cmd/options.h"
#include "transports/device.h"

namespace verbscope {

// `add_options` declares the command's own part of PlanOptions, between those of the peer and those
// of this side.
Command AddPlanCommand(CLI::App& app, DeviceProvider& provider, const std::string& name,
                       const std::string& description,
                       const std::function<void(CLI::App&, PlanOptions&)>& add_options);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_PLAN_COMMAND_H_
