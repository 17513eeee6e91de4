// `check`: named semantic checks, on any device.
#include <memory>
#include <string>
#include <vector>

#include "cmd/commands.h"
#include "cmd/output.h"
#include "cmd/plan_command.h"
#include "core/checks/catalog.h"
#include "core/plan/check_plan.h"

namespace verbscope {
namespace {

int List(const OutputOptions& options, const std::vector<std::string>& argv) {
  Record record;
  Output output(options, std::string(kCheck), argv, record);
  if (Status status = output.CheckDestinations(); !status) {
    return output.Fail(std::move(status.error()));
  }
  record.catalog = CheckCatalog();
  record.behaviours = BehaviourRows();
  record.verdict = "pass";
  record.exit_code = 0;
  return output.Finish();
}

}  // namespace

Command AddCheck(CLI::App& app, DeviceProvider& provider) {
  const auto list = std::make_shared<bool>(false);
  return AddPlanCommand(
      app, provider, std::string(kCheck),
      "named checks of what the verbs interface promises, on any device",
      [list](CLI::App& command, PlanOptions& options) {
        command.add_option("CHECK", options.checks, "names of checks (default: all)");
        command.add_flag("--list", *list, "the checks: what each does, expects, and why");
        command.add_flag("--quick", options.quick, "fewer messages in the longest checks");
        AddPathOptions(command, options);
      },
      [list](PlanCommandOptions& options, const OutputOptions& output,
             const std::vector<std::string>& argv) -> std::optional<int> {
        if (*list) return List(output, argv);
        // The first word is a host, unless a check is called so.
        std::string& host = options.client.peer.host;
        if (IsCheckName(host) || (options.client.peer.loopback && !host.empty())) {
          options.plan.checks.insert(options.plan.checks.begin(), std::exchange(host, {}));
        }
        return std::nullopt;
      });
}

}  // namespace verbscope
