// The assertions of a command line: --assert, --asserts, --baseline, --on-inconclusive and
// --max-duration, as written and as parsed. Filled by CLI11, then read; one thread.
#ifndef VERBSCOPE_CMD_GATE_OPTIONS_H_
#define VERBSCOPE_CMD_GATE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/gates/judge.h"
#include "core/plan/plan.h"

namespace verbscope {

struct GateOptions {
  std::vector<std::string> assertions;
  std::string file;
  std::vector<std::string> baselines;
  std::string on_inconclusive = "report";
  std::optional<std::string> max_duration;
};

// All of them for a command whose points can be measured on; without `extends` no --max-duration.
void AddGateOptions(CLI::App& app, GateOptions& options, bool extends);

// The files that they are read from.
std::vector<std::string> InputsOf(const GateOptions& options);

// Parsed and checked for the command, before any traffic; baselines are read. With
// --on-inconclusive extend, sets plan->extend_to_ns. `plan`: null for a command without one.
// kUsage.
Expected<Gates> MakeGates(const GateOptions& options, std::string_view command, Plan* plan);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_GATE_OPTIONS_H_
