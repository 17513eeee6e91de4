#include "cmd/gate_options.h"

#include <fmt/core.h>

#include <utility>

#include "cmd/documents.h"
#include "cmd/options.h"
#include "core/plan/operation.h"

namespace verbscope {
namespace {

constexpr int64_t kDefaultMaxDurationNs = 60'000'000'000;
constexpr size_t kMaxAssertsBytes = size_t{64} << 10;

Status ReadAssertions(const GateOptions& options, Gates& gates) {
  for (const std::string& text : options.assertions) {
    Expected<Assertion> assertion = ParseAssertion(text);
    if (!assertion) return Fail(std::move(assertion.error()));
    gates.assertions.push_back(std::move(*assertion));
  }
  if (!options.file.empty()) {
    Expected<std::string> text = ReadTextFile(options.file, kMaxAssertsBytes);
    if (!text) {
      text.error().message.insert(0, "--asserts ");
      return Fail(std::move(text.error()));
    }
    Expected<std::vector<Assertion>> parsed = ParseAssertions(*text);
    if (!parsed) return Fail(NameOption(std::move(parsed.error()), "--asserts", options.file));
    // A gate that is empty by accident would let everything through.
    if (parsed->empty()) {
      return Fail(UsageError(fmt::format("--asserts {}: the file holds no assertion", options.file),
                             {}, "write one a line, or leave the option out"));
    }
    for (Assertion& assertion : *parsed) gates.assertions.push_back(std::move(assertion));
  }
  if (gates.assertions.size() <= kMaxAssertions) return {};
  return Fail(UsageError(fmt::format("there are more than {} assertions", kMaxAssertions), {},
                         "split them over several runs"));
}

Status ReadPolicy(const GateOptions& options, Plan* plan, Gates& gates) {
  Expected<OnInconclusive> policy = ParseOnInconclusive(options.on_inconclusive);
  if (!policy) {
    return Fail(
        NameOption(std::move(policy.error()), "--on-inconclusive", options.on_inconclusive));
  }
  gates.on_inconclusive = *policy;
  int64_t longest_ns = kDefaultMaxDurationNs;
  Status status = TakeOption(options.max_duration, "--max-duration", ParseDuration, longest_ns);
  if (!status) return status;
  const bool extends = *policy == OnInconclusive::kExtend;
  if (options.max_duration && !extends) {
    return Fail(UsageError("--max-duration bounds what --on-inconclusive extend measures on", {},
                           "add --on-inconclusive extend, or leave --max-duration out"));
  }
  if (!extends) return {};
  if (plan == nullptr || FindOperation(plan->command) == nullptr) {
    return Fail(UsageError("--on-inconclusive extend: this command cannot measure on", {},
                           "measuring commands such as send-lat and send-bw can"));
  }
  if (!plan->iterations && longest_ns < plan->duration_ns) {
    return Fail(
        UsageError(fmt::format("--max-duration {} is shorter than the measurement itself, {}",
                               DurationText(longest_ns), DurationText(plan->duration_ns)),
                   {}, "raise --max-duration, or shorten -D"));
  }
  plan->extend_to_ns = longest_ns;
  return {};
}

}  // namespace

void AddGateOptions(CLI::App& app, GateOptions& options, bool extends) {
  app.add_option("--assert", options.assertions,
                 "what must hold, such as 'p99<5us' or 'bw{size=64K}>=90Gb/s'; may be given again")
      ->type_name("EXPR")
      ->expected(1)
      ->take_all();
  app.add_option("--asserts", options.file, "a file of assertions, one a line")->type_name("FILE");
  app.add_option("--baseline", options.baselines,
                 "document that `baseline` in assertions stands for; may be given again")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  app.add_option("--on-inconclusive", options.on_inconclusive,
                 "what too few samples make of the run: report (exit 4), fail, pass, extend")
      ->type_name("WHAT")
      ->capture_default_str();
  if (!extends) return;
  app.add_option("--max-duration", options.max_duration,
                 "longest measurement of a result with --on-inconclusive extend (default: 60s)")
      ->type_name("TIME");
}

std::vector<std::string> InputsOf(const GateOptions& options) {
  std::vector<std::string> inputs = options.baselines;
  if (!options.file.empty()) inputs.push_back(options.file);
  return inputs;
}

Expected<Gates> MakeGates(const GateOptions& options, std::string_view command, Plan* plan) {
  Gates gates;
  if (Status status = ReadAssertions(options, gates); !status) {
    return Fail(std::move(status.error()));
  }
  for (const Assertion& assertion : gates.assertions) {
    if (Status status = CheckAssertion(assertion, command, plan); !status) {
      return Fail(std::move(status.error()));
    }
  }
  if (Status status = ReadPolicy(options, plan, gates); !status) {
    return Fail(std::move(status.error()));
  }
  for (const std::string& path : options.baselines) {
    Expected<Record> baseline = ReadDocument(path);
    if (!baseline) {
      baseline.error().message.insert(0, "--baseline ");
      return Fail(std::move(baseline.error()));
    }
    gates.baselines.push_back(std::move(*baseline));
  }
  if (Status status = CheckBaselines(gates, command); !status) {
    return Fail(std::move(status.error()));
  }
  return gates;
}

}  // namespace verbscope
