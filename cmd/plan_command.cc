#include "cmd/plan_command.h"

#include <memory>
#include <utility>
#include <vector>

#include "cmd/client.h"

namespace verbscope {

Command AddPlanCommand(CLI::App& app, DeviceProvider& provider, const std::string& name,
                       const std::string& description,
                       const std::function<void(CLI::App&, PlanOptions&)>& add_options) {
  struct Options {
    ClientOptions client;
    PlanOptions plan;
  };
  const auto options = std::make_shared<Options>();
  const auto output_options = std::make_shared<OutputOptions>();
  CLI::App* command = app.add_subcommand(name, description);
  AddPeerOptions(*command, options->client.peer);
  add_options(*command, options->plan);
  AddLocalOptions(*command, options->client.local);
  AddOutputOptions(*command, *output_options);
  return {.app = command,
          .run = [options, output_options, name, &provider](const std::vector<std::string>& argv) {
            Record record;
            Output output(*output_options, name, argv, record);
            if (Status status = output.CheckDestinations(); !status) {
              return output.Fail(std::move(status.error()));
            }
            Expected<Plan> plan = MakePlan(options->plan, name);
            if (!plan) return output.Fail(std::move(plan.error()));
            record.plan = *plan;
            Status status = RunClient(options->client, *plan, provider, output, record);
            return status ? output.Finish() : output.Fail(std::move(status.error()));
          }};
}

}  // namespace verbscope
