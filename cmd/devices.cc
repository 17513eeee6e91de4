#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cmd/commands.h"
#include "cmd/output.h"
#include "core/record/outcome.h"
#include "core/record/record.h"
#include "core/selection/selection.h"

namespace verbscope {
namespace {

struct DevicesOptions {
  bool resources = false;
  OutputOptions output;
};

int RunCommand(const DevicesOptions& options, DeviceProvider& provider,
               const std::vector<std::string>& argv) {
  Record record;
  Output output(options.output, "devices", argv, record);
  if (Status status = output.CheckDestinations(); !status) {
    return output.Fail(std::move(status.error()));
  }
  Expected<std::vector<DeviceSummary>> devices = provider.List();
  if (!devices) return output.Fail(std::move(devices.error()));
  if (devices->size() == 1) output.Notice(NoDeviceError().message);  // only the soft one
  record.devices = std::move(*devices);
  if (options.resources) {
    Expected<std::vector<DeviceResources>> resources = provider.Resources();
    if (!resources) return output.Fail(std::move(resources.error()));
    if (resources->empty()) {
      output.Notice(
          "the kernel lists no RDMA device, so no objects on one; those of the soft "
          "device live in the process that uses it");
    }
    record.resources = std::move(*resources);
  }
  SetOutcome("pass", record);
  return output.Finish();
}

}  // namespace

Command AddDevices(CLI::App& app, DeviceProvider& provider) {
  const auto options = std::make_shared<DevicesOptions>();
  CLI::App* command =
      app.add_subcommand("devices", "RDMA devices of this host: ports, GIDs, limits");
  command->add_flag("--resources", options->resources,
                    "and the contexts, PDs, CQs, QPs, MRs and SRQs in use on them, with their "
                    "owners");
  AddOutputOptions(*command, options->output);
  return {.app = command, .run = [options, &provider](const std::vector<std::string>& argv) {
            return RunCommand(*options, provider, argv);
          }};
}

}  // namespace verbscope
