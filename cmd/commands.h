// The commands. Each Add… function declares one subcommand with its options and returns what runs
// it once the command line is parsed; the returned function yields the exit code of the process.
#ifndef VERBSCOPE_CMD_COMMANDS_H_
#define VERBSCOPE_CMD_COMMANDS_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "cmd/options.h"
#include "transports/device.h"

namespace verbscope {

struct Command {
  CLI::App* app = nullptr;
  std::function<int(const std::vector<std::string>& argv)> run;
};

Command AddCheck(CLI::App& app, DeviceProvider& provider);
Command AddCompare(CLI::App& app);
Command AddAb(CLI::App& app, DeviceProvider& provider);
Command AddCqOverrun(CLI::App& app, DeviceProvider& provider);
Command AddCqScale(CLI::App& app, DeviceProvider& provider);
Command AddDevices(CLI::App& app, DeviceProvider& provider);
Command AddDoctor(CLI::App& app);
Command AddEventVsPoll(CLI::App& app, DeviceProvider& provider);
Command AddImm(CLI::App& app, DeviceProvider& provider);
std::vector<Command> AddMeasuringCommands(CLI::App& app, DeviceProvider& provider);
Command AddReport(CLI::App& app);
Command AddRnrTest(CLI::App& app, DeviceProvider& provider);
Command AddServe(CLI::App& app, DeviceProvider& provider);
Command AddVerbCost(CLI::App& app, DeviceProvider& provider);
Command AddZeroLenRecv(CLI::App& app, DeviceProvider& provider);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_COMMANDS_H_
