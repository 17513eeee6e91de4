// The commands of several steps, whose answer is a list of checks: imm, zero-len-recv, rnr-test.
#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "cmd/client.h"
#include "cmd/commands.h"
#include "core/plan/rnr_plan.h"
#include "core/plan/step_commands.h"

namespace verbscope {
namespace {

Command AddSteps(CLI::App& app, DeviceProvider& provider, const std::string& name,
                 const std::string& description) {
  struct Options {
    ClientOptions client;
    PlanOptions plan;
  };
  const auto options = std::make_shared<Options>();
  const auto output_options = std::make_shared<OutputOptions>();
  const StepCommand& steps = *FindStepCommand(name);
  CLI::App* command = app.add_subcommand(name, description);
  AddPeerOptions(*command, options->client.peer);
  AddStepOptions(*command, options->plan,
                 fmt::format("messages of each step that measures (default: {}, with --quick {})",
                             steps.iterations, steps.quick_iterations));
  if (name == kRnrTest) {
    command
        ->add_option("--timer-codes", options->plan.timer_codes,
                     "RNR timers to measure, such as 1,12-14, or all: code 0 is 655.36 ms, 1 is "
                     "0.01 ms, 31 is 491.52 ms (default: 1,8,12,16,20,24,0)")
        ->type_name("LIST");
  }
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
            const Status status = RunClient(options->client, *plan, provider, output, record);
            return status ? output.Finish() : output.Fail(status.error());
          }};
}

}  // namespace

Command AddImm(CLI::App& app, DeviceProvider& provider) {
  return AddSteps(app, provider, "imm",
                  "immediate data with SEND and WRITE: value, order, flags, placement; latency");
}

Command AddZeroLenRecv(CLI::App& app, DeviceProvider& provider) {
  return AddSteps(app, provider, "zero-len-recv",
                  "the uses of a receive with no capacity, and its error");
}

Command AddRnrTest(CLI::App& app, DeviceProvider& provider) {
  return AddSteps(app, provider, std::string(kRnrTest),
                  "receiver not ready: timers, retries, exhaustion, recovery; predicted against "
                  "measured");
}

}  // namespace verbscope
