#include "core/plan/step_commands.h"

#include <algorithm>
#include <array>

namespace verbscope {
namespace {

constexpr std::array kStepCommands = {
    StepCommand{.command = "imm"},
    // Receives that are too short need a message of one byte or more.
    StepCommand{.command = "zero-len-recv", .smallest_size = 1},
    StepCommand{.command = "rnr-test"},
};

}  // namespace

std::span<const StepCommand> StepCommands() { return kStepCommands; }

const StepCommand* FindStepCommand(std::string_view command) {
  const auto found = std::ranges::find(kStepCommands, command, &StepCommand::command);
  return found == kStepCommands.end() ? nullptr : &*found;
}

}  // namespace verbscope
