// The commands of several steps, whose answer is a list of checks: imm, zero-len-recv, rnr-test,
// cq-scale, cq-overrun.
#include <fmt/core.h>

#include <string>

#include "cmd/commands.h"
#include "cmd/plan_command.h"
#include "core/plan/cq_plan.h"
#include "core/plan/rnr_plan.h"
#include "core/plan/step_commands.h"

namespace verbscope {
namespace {

Command AddSteps(CLI::App& app, DeviceProvider& provider, const std::string& name,
                 const std::string& description) {
  return AddPlanCommand(
      app, provider, name, description, [&name](CLI::App& command, PlanOptions& options) {
        const StepCommand& steps = *FindStepCommand(name);
        if (steps.timed) {
          AddTimedStepOptions(command, options);
          command
              .add_option("--cqs", options.cqs,
                          "numbers of completion queues, each with a thread (default: 1,2,4)")
              ->type_name("LIST");
          command
              .add_option("--cq-depth", options.cq_depths,
                          "entries of one completion queue, to be compared")
              ->type_name("LIST");
          return;
        }
        AddStepOptions(
            command, options,
            fmt::format("messages of each step that measures (default: {}, with --quick {})",
                        steps.iterations, steps.quick_iterations));
        if (name != kRnrTest) return;
        command
            .add_option("--timer-codes", options.timer_codes,
                        "RNR timers to measure, such as 1,12-14, or all: code 0 is 655.36 ms, 1 "
                        "is 0.01 ms, 31 is 491.52 ms (default: 1,8,12,16,20,24,0)")
            ->type_name("LIST");
      });
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

Command AddCqScale(CLI::App& app, DeviceProvider& provider) {
  return AddSteps(app, provider, std::string(kCqScale),
                  "more completion queues and threads, several threads at one, deeper ones: "
                  "message rate, speed-up, CPU per message");
}

Command AddCqOverrun(CLI::App& app, DeviceProvider& provider) {
  return AddSteps(app, provider, std::string(kCqOverrun),
                  "a completion queue with too little room: its event, what is lost, recovery, "
                  "avoidance, sizing");
}

}  // namespace verbscope
