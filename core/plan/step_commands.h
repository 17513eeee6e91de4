// The commands of two sides that are lists of small steps (core/scenario) instead of one measuring
// loop: what a plan of theirs may ask for. The counterpart of operation.h.
//
// Constant data; any thread.
#ifndef VERBSCOPE_CORE_PLAN_STEP_COMMANDS_H_
#define VERBSCOPE_CORE_PLAN_STEP_COMMANDS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace verbscope {

struct StepCommand {
  std::string_view command;    // on the command line
  uint64_t smallest_size = 0;  // of --size, in bytes
  uint64_t iterations = 1000;  // of each step that measures, unless --iterations says otherwise
  uint64_t quick_iterations = 100;
  // Measures for a time, not a number of messages, on queue pairs of which the plan says how many
  // and how many requests each has in flight.
  bool timed = false;
};

std::span<const StepCommand> StepCommands();
// Null: no such command.
const StepCommand* FindStepCommand(std::string_view command);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_STEP_COMMANDS_H_
