#include <memory>

#include "cmd/client.h"
#include "cmd/commands.h"

namespace verbscope {

Command AddSendLat(CLI::App& app, DeviceProvider& provider) {
  struct Options {
    ClientOptions client;
    PlanOptions plan;
  };
  const auto options = std::make_shared<Options>();
  const auto output_options = std::make_shared<OutputOptions>();
  CLI::App* command = app.add_subcommand(
      "send-lat", "latency of SEND: a ping-pong, half round trip, as a histogram");
  AddPeerOptions(*command, options->client.peer);
  AddPlanOptions(*command, options->plan);
  AddLocalOptions(*command, options->client.local);
  AddOutputOptions(*command, *output_options);
  return {.app = command,
          .run = [options, output_options, &provider](const std::vector<std::string>& argv) {
            Record record;
            Output output(*output_options, "send-lat", argv, record);
            if (Status status = output.CheckDestinations(); !status) {
              return output.Fail(std::move(status.error()));
            }
            Expected<Plan> plan = MakePlan(options->plan, "send-lat");
            if (!plan) return output.Fail(std::move(plan.error()));
            record.plan = *plan;
            if (Status status = RunClient(options->client, *plan, provider, output, record);
                !status) {
              return output.Fail(std::move(status.error()));
            }
            return output.Finish();
          }};
}

}  // namespace verbscope
