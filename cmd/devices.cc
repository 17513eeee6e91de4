#include <memory>

#include "cmd/commands.h"
#include "cmd/output.h"
#include "core/record/record.h"
#include "core/selection/selection.h"

namespace verbscope {

Command AddDevices(CLI::App& app, DeviceProvider& provider) {
  const auto output_options = std::make_shared<OutputOptions>();
  CLI::App* command =
      app.add_subcommand("devices", "RDMA devices of this host: ports, GIDs, limits");
  AddOutputOptions(*command, *output_options);
  return {.app = command, .run = [output_options, &provider](const std::vector<std::string>& argv) {
            Record record;
            Output output(*output_options, "devices", argv, record);
            if (Status status = output.CheckDestinations(); !status) {
              return output.Fail(std::move(status.error()));
            }
            Expected<std::vector<DeviceSummary>> devices = provider.List();
            if (!devices) return output.Fail(std::move(devices.error()));
            if (devices->size() == 1) output.Notice(NoDeviceError().message);  // only the soft one
            record.devices = std::move(*devices);
            record.verdict = "pass";
            record.exit_code = 0;
            return output.Finish();
          }};
}

}  // namespace verbscope
