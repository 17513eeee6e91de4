// The measuring commands: latency of one message or operation at a time, and bandwidth.
#include <utility>
#include <vector>

#include "cmd/commands.h"
#include "cmd/plan_command.h"

namespace verbscope {
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
    commands.push_back(AddPlanCommand(app, provider, name, description, AddPlanOptions));
  }
  return commands;
}

}  // namespace verbscope
