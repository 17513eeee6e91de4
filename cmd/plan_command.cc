#include "cmd/plan_command.h"

#include <memory>
#include <utility>
#include <vector>

#include "cmd/gate_options.h"
#include "core/plan/operation.h"

namespace verbscope {
namespace {

// As the user wrote them.
struct Options {
  PlanCommandOptions command;
  GateOptions gates;
  OutputOptions output;
};

int Run(const Options& options, const std::string& name, DeviceProvider& provider,
        const std::vector<std::string>& argv) {
  Record record;
  Output output(options.output, name, argv, record);
  if (Status status = output.CheckDestinations(InputsOf(options.gates)); !status) {
    return output.Fail(std::move(status.error()));
  }
  Expected<Plan> plan = MakePlan(options.command.plan, name);
  if (!plan) return output.Fail(std::move(plan.error()));
  Expected<Gates> gates = MakeGates(options.gates, name, &*plan);
  if (!gates) return output.Fail(std::move(gates.error()));
  record.plan = *plan;
  Status status = RunClient(options.command.client, *plan, *gates, provider, output, record);
  return status ? output.Finish() : output.Fail(std::move(status.error()));
}

}  // namespace

void AddPlanCommandOptions(CLI::App& app, const DeclarePlanOptions& add_options,
                           PlanCommandOptions& options) {
  AddPeerOptions(app, options.client.peer);
  add_options(app, options.plan);
  AddLocalOptions(app, options.client.local);
}

Command AddPlanCommand(CLI::App& app, DeviceProvider& provider, const std::string& name,
                       const std::string& description, const DeclarePlanOptions& add_options,
                       PreparePlan prepare) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(name, description);
  AddPlanCommandOptions(*command, add_options, options->command);
  AddGateOptions(*command, options->gates, /*extends=*/FindOperation(name) != nullptr);
  AddOutputOptions(*command, options->output);
  return {.app = command,
          .run = [options, name, prepare = std::move(prepare),
                  &provider](const std::vector<std::string>& argv) {
            if (prepare) {
              if (const auto done = prepare(options->command, options->output, argv)) return *done;
            }
            return Run(*options, name, provider, argv);
          }};
}

}  // namespace verbscope
