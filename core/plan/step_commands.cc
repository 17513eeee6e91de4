#include "core/plan/step_commands.h"

#include <algorithm>
#include <array>

#include "core/plan/check_plan.h"
#include "core/plan/cq_plan.h"
#include "core/plan/rnr_plan.h"

namespace verbscope {
namespace {

constexpr std::array kStepCommands = {
    StepCommand{.command = "imm"},
    // Receives that are too short need a message of one byte or more.
    StepCommand{.command = "zero-len-recv", .smallest_size = 1},
    // Rounds of its recovery step. A WRITE of nothing would leave no data to look for.
    StepCommand{.command = kRnrTest, .smallest_size = 1, .iterations = 50, .quick_iterations = 10},
    StepCommand{.command = kCqScale, .timed = true},
    // Messages of its steps that lose nothing.
    // Its checks choose their sizes; the iterations are those of the longest ones.
    StepCommand{.command = kCheck, .iterations = 200, .quick_iterations = 50},
    StepCommand{.command = kCqOverrun, .iterations = 200, .quick_iterations = 50},
};

}  // namespace

std::span<const StepCommand> StepCommands() { return kStepCommands; }

const StepCommand* FindStepCommand(std::string_view command) {
  const auto found = std::ranges::find(kStepCommands, command, &StepCommand::command);
  return found == kStepCommands.end() ? nullptr : &*found;
}

}  // namespace verbscope
