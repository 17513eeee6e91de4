// The measuring commands: latency of one message or operation at a time, and bandwidth.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cmd/client.h"
#include "cmd/commands.h"

namespace verbscope {
namespace {

Command AddMeasuring(CLI::App& app, DeviceProvider& provider, const std::string& name,
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
            Status status = RunClient(options->client, *plan, provider, output, record);
            return status ? output.Finish() : output.Fail(std::move(status.error()));
          }};
}

}  // namespace

std::vector<Command> AddMeasuringCommands(CLI::App& app, DeviceProvider& provider) {
  constexpr std::pair<const char*, const char*> kCommands[] = {
      {"send-lat", "latency of SEND: a ping-pong, half round trip, as a histogram"},
      {"write-lat",
       "latency of RDMA WRITE: a ping-pong, half round trip, by polling the payload or with --imm"},
      {"read-lat", "latency of RDMA READ: post to completion, one full operation, as a histogram"},
      {"atomic-lat",
       "latency of Atomics: post to completion, one full operation, every result checked"},
      {"send-bw", "bandwidth and message rate of SEND, on both sides"},
      {"write-bw", "bandwidth and message rate of RDMA WRITE"},
      {"read-bw", "bandwidth and message rate of RDMA READ"},
  };
  std::vector<Command> commands;
  for (const auto& [name, description] : kCommands) {
    commands.push_back(AddMeasuring(app, provider, name, description));
  }
  return commands;
}

}  // namespace verbscope
