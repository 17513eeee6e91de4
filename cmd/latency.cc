// The latency commands: one message or operation at a time.
#include <memory>
#include <string>

#include "cmd/client.h"
#include "cmd/commands.h"
#include "core/plan/operation.h"

namespace verbscope {
namespace {

// What cannot be, whatever the other side says.
Status CheckSettings(const Plan& plan, const LocalOptions& local) {
  const Operation operation = OperationOf(plan);
  if (operation.shape == LoopShape::kPingPong) return {};
  Error error;
  error.error_class = ErrorClass::kUsage;
  if (local.wait == "solicited") {
    error.message = "--wait solicited: " + plan.command + " waits for completions of its own " +
                    "requests, and only what a peer sends can be solicited";
    error.next_step = "use --wait event";
    return Fail(std::move(error));
  }
  return {};
}

Command AddLatency(CLI::App& app, DeviceProvider& provider, const std::string& name,
                   const std::string& description) {
  struct Options {
    ClientOptions client;
    PlanOptions plan;
  };
  const auto options = std::make_shared<Options>();
  const auto output_options = std::make_shared<OutputOptions>();
  CLI::App* command = app.add_subcommand(name, description);
  AddPeerOptions(*command, options->client.peer);
  AddPlanOptions(*command, options->plan);
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
            Status status = CheckSettings(*plan, options->client.local);
            if (status) status = RunClient(options->client, *plan, provider, output, record);
            return status ? output.Finish() : output.Fail(std::move(status.error()));
          }};
}

}  // namespace

Command AddSendLat(CLI::App& app, DeviceProvider& provider) {
  return AddLatency(app, provider, "send-lat",
                    "latency of SEND: a ping-pong, half round trip, as a histogram");
}

Command AddReadLat(CLI::App& app, DeviceProvider& provider) {
  return AddLatency(app, provider, "read-lat",
                    "latency of RDMA READ: post to completion, one full operation, as a histogram");
}

}  // namespace verbscope
