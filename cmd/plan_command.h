// A command that runs a plan with a peer: its options, and its way from them to the record. One
// thread.
#ifndef VERBSCOPE_CMD_PLAN_COMMAND_H_
#define VERBSCOPE_CMD_PLAN_COMMAND_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmd/client.h"
#include "cmd/commands.h"
#include "cmd/options.h"

namespace verbscope {

// As the user wrote them, but for what is done with the result.
struct PlanCommandOptions {
  ClientOptions client;
  PlanOptions plan;
};

using DeclarePlanOptions = std::function<void(CLI::App&, PlanOptions&)>;

void AddPlanCommandOptions(CLI::App& app, const DeclarePlanOptions& add_options,
                           PlanCommandOptions& options);

// What a command does with its options before a plan is made of them; what it returns as done ends
// the command with that exit code instead.
using PreparePlan = std::function<std::optional<int>(PlanCommandOptions&, const OutputOptions&,
                                                     const std::vector<std::string>& argv)>;

// Declares such a command, with its output options and its assertions.
Command AddPlanCommand(CLI::App& app, DeviceProvider& provider, const std::string& name,
                       const std::string& description, const DeclarePlanOptions& add_options,
                       PreparePlan prepare = nullptr);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_PLAN_COMMAND_H_
