#include <fmt/core.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/commands.h"
#include "cmd/gate_options.h"
#include "cmd/output.h"
#include "cmd/signals.h"
#include "core/cost/cost_plan.h"
#include "core/cost/run_cost.h"
#include "core/record/record.h"
#include "core/selection/selection.h"
#include "core/session/context.h"

namespace verbscope {
namespace {

// As the user wrote them.
struct VerbCostOptions {
  LocalOptions local;
  OutputOptions output;
  GateOptions gates;
  std::optional<std::string> verbs;
  std::optional<uint64_t> iterations;
  std::optional<std::string> max_size;
  std::optional<std::string> deadline;
  bool quick = false;
};

void AddVerbCostOptions(CLI::App& app, VerbCostOptions& options) {
  app.add_option("--verbs", options.verbs,
                 "verbs to measure (default: all): post_send, ibv_wr, post_recv, poll_cq, "
                 "start_poll, req_notify_cq, get_cq_event, reg_mr, create_qp, create_cq, modify_qp")
      ->type_name("LIST");
  app.add_option("-n,--iterations", options.iterations,
                 "timed calls of each row (default: 2000), fewer where they take long")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, kMaxCostCalls));
  app.add_option("--max-size", options.max_size, "largest memory registration (default: 1G)")
      ->type_name("SIZE");
  app.add_option("--deadline", options.deadline,
                 "limit of the whole command (default: as planned, plus 30 s)")
      ->type_name("TIME");
  app.add_flag("--quick", options.quick,
               "fewer calls and registrations up to 16 MiB: about three seconds");
  AddGateOptions(app, options.gates, /*extends=*/false);
  AddDeviceOptions(app, options.local, "the first with an active port");
  AddOutputOptions(app, options.output);
}

Expected<CostPlan> MakeCostPlan(const VerbCostOptions& options) {
  CostPlan plan = options.quick ? QuickCostPlan() : CostPlan();
  if (options.iterations) plan.calls = *options.iterations;
  Status status = TakeOption(options.verbs, "--verbs", ParseVerbGroups, plan.groups);
  if (status) status = TakeOption(options.max_size, "--max-size", ParseSize, plan.max_bytes);
  if (status) status = TakeOption(options.deadline, "--deadline", ParseDuration, plan.deadline_ns);
  if (!status) return Fail(std::move(status.error()));
  return plan;
}

int RunCommand(const VerbCostOptions& options, DeviceProvider& provider,
               const std::vector<std::string>& argv) {
  Record record;
  Output output(options.output, "verb-cost", argv, record);
  if (Status status = output.CheckDestinations(InputsOf(options.gates)); !status) {
    return output.Fail(std::move(status.error()));
  }
  Expected<CostPlan> plan = MakeCostPlan(options);
  if (!plan) return output.Fail(std::move(plan.error()));
  Expected<Gates> gates = MakeGates(options.gates, "verb-cost", nullptr);
  if (!gates) return output.Fail(std::move(gates.error()));
  Expected<LocalSettings> settings = MakeSettings(options.local);
  if (!settings) return output.Fail(std::move(settings.error()));
  Expected<std::vector<DeviceSummary>> devices = provider.ListFor(settings->device);
  if (!devices) return output.Fail(std::move(devices.error()));
  if (Status status = RequireUsableDevice(*devices, *settings, /*loopback=*/false); !status) {
    return output.Fail(std::move(status.error()));
  }
  output.Say(fmt::format("measuring for at most about {:.0f} s",
                         static_cast<double>(PlannedNs(*plan)) * 1e-9));
  const SessionContext context{
      .provider = provider,
      .interrupt = ProcessInterrupt(),
      .notice = [&output](const std::string& text) { output.Notice(text); }};
  RunVerbCost(context, {.plan = std::move(*plan), .settings = std::move(*settings)}, record);
  record.gates = Judge(*gates, record);
  CountGates(gates->on_inconclusive, record);
  return output.Finish();
}

}  // namespace

Command AddVerbCost(CLI::App& app, DeviceProvider& provider) {
  const auto options = std::make_shared<VerbCostOptions>();
  CLI::App* command = app.add_subcommand(
      "verb-cost", "nanoseconds per verb call, and which calls enter the kernel");
  AddVerbCostOptions(*command, *options);
  return {.app = command, .run = [options, &provider](const std::vector<std::string>& argv) {
            return RunCommand(*options, provider, argv);
          }};
}

}  // namespace verbscope
