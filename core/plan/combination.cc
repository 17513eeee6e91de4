// Which options go together, command by command.
#include <fmt/core.h>

#include <algorithm>

#include "core/plan/check_plan.h"
#include "core/plan/cq_plan.h"
#include "core/plan/input_text.h"
#include "core/plan/mode_plan.h"
#include "core/plan/operation.h"
#include "core/plan/plan.h"
#include "core/plan/rnr_plan.h"
#include "core/plan/step_commands.h"

namespace verbscope {
namespace {

constexpr std::string_view kLeaveOut = "leave it out";

bool Streams(const Operation& operation) { return operation.shape == LoopShape::kStream; }

Status CheckQueues(const Plan& plan, const Operation& operation) {
  if (Streams(operation)) return {};
  if (plan.qps != 1 || plan.post_list != 1) {
    return Fail(
        UsageError(fmt::format("{} works on one queue pair, one request per post: --qps and "
                               "--post-list must be 1",
                               plan.command),
                   {}, "leave them out"));
  }
  if (plan.rate_per_s == 0 && plan.tx_depth != 1) {
    return Fail(UsageError(
        fmt::format("{} has one message in flight: --tx-depth must be 1, except with --rate",
                    plan.command),
        {}, std::string(kLeaveOut)));
  }
  if (operation.takes_receives && plan.rx_depth < 2) {
    return Fail(
        UsageError(fmt::format("{} needs two receives or more: with one, the next message may "
                               "arrive before it is posted again",
                               plan.command),
                   {}, "leave --rx-depth out"));
  }
  return {};
}

Status CheckRate(const Plan& plan, const Operation& operation) {
  if (plan.rate_per_s == 0) return {};
  const double seconds = static_cast<double>(plan.duration_ns) * 1e-9;
  // The first is due one gap after the beginning; what is due at the very end is not sent.
  if (!plan.iterations && seconds * plan.rate_per_s <= 1) {
    return Fail(UsageError(fmt::format("--rate {:g}: no message is due within {}", plan.rate_per_s,
                                       DurationText(plan.duration_ns)),
                           {}, "raise --rate or --duration"));
  }
  if (Streams(operation)) {
    return Fail(
        UsageError(fmt::format("--rate: {} measures how much passes, not when", plan.command), {},
                   "use a latency command for an open loop"));
  }
  if (operation.shape == LoopShape::kPayloadPing) {
    return Fail(UsageError("--rate: messages in flight cannot be told apart by polling one payload",
                           {}, "add --imm"));
  }
  if (operation.takes_receives && plan.rx_depth < plan.tx_depth) {
    return Fail(UsageError(fmt::format("--rx-depth {} is less than the {} messages that --tx-depth "
                                       "allows in flight",
                                       plan.rx_depth, plan.tx_depth),
                           {}, "raise --rx-depth or lower --tx-depth"));
  }
  return {};
}

Status CheckSizesOf(const Plan& plan, const Operation& operation) {
  const bool holds_nothing = std::ranges::find(plan.sizes_bytes, 0u) != plan.sizes_bytes.end();
  if (operation.shape == LoopShape::kPayloadPing && holds_nothing) {
    return Fail(
        UsageError("--size 0: a WRITE of nothing leaves nothing to poll for", {}, "add --imm"));
  }
  if (operation.verb == Verb::kAtomic && plan.sizes_bytes != std::vector<uint64_t>{8}) {
    return Fail(UsageError("--size: an Atomic works on 8 bytes", {}, std::string(kLeaveOut)));
  }
  return {};
}

Status CheckFlags(const Plan& plan, const Operation& operation) {
  const bool carries_data = operation.verb == Verb::kSend || operation.verb == Verb::kWrite;
  if (plan.imm && !carries_data) {
    return Fail(UsageError(fmt::format("--imm: {} carries no immediate data", operation.name), {},
                           std::string(kLeaveOut)));
  }
  if (plan.inline_mode.kind == InlineKind::kBytes && !carries_data) {
    return Fail(UsageError(fmt::format("--inline: {} carries no data of this side", operation.name),
                           {}, std::string(kLeaveOut)));
  }
  if (plan.bidirectional && !Streams(operation)) {
    return Fail(
        UsageError(fmt::format("--bidirectional: {} sends one message at a time", plan.command), {},
                   std::string(kLeaveOut)));
  }
  return {};
}

// The steps choose queues, rates and immediate data themselves; what is left to ask for is a size.
Status CheckSteps(const Plan& plan, const StepCommand& steps) {
  if (plan.sizes_bytes.size() != 1) {
    return Fail(UsageError(
        fmt::format("--size: {} works on one size, and derives others from it", plan.command), {},
        "give one number"));
  }
  if (plan.sizes_bytes.front() < steps.smallest_size) {
    return Fail(UsageError(fmt::format("--size {}: {} needs {} byte or more",
                                       plan.sizes_bytes.front(), plan.command, steps.smallest_size),
                           {}, "give a larger --size"));
  }
  if (steps.timed && plan.iterations) {
    return Fail(
        UsageError(fmt::format("{} measures for a time and counts what passes", plan.command), {},
                   "give --duration instead of --iterations"));
  }
  if (!steps.timed && !plan.iterations) {
    return Fail(UsageError(fmt::format("{} counts messages and has no duration", plan.command), {},
                           "give --iterations"));
  }
  const bool queues = steps.timed || (plan.qps == 1 && plan.tx_depth == 1);
  const bool plain = queues && plan.post_list == 1 && plan.repeat == 1 && plan.rate_per_s == 0 &&
                     !plan.imm && !plan.bidirectional;
  if (plain) return {};
  return Fail(
      UsageError(fmt::format("{} chooses queue pairs, depths, rates, repeats and immediate data "
                             "itself",
                             plan.command),
                 {}, "leave those options out"));
}

tl::unexpected<Error> RefusedWait(WaitMode wait, std::string why, std::string next_step) {
  return Fail(
      UsageError(fmt::format("--wait {}: {}", ToText(wait), why), {}, std::move(next_step)));
}

}  // namespace

Status CheckWait(const Plan& plan, bool requester, WaitMode wait) {
  if (FindStepCommand(plan.command) != nullptr) {
    if (wait.kind == WaitKind::kBusy) return {};
    // A way of waiting that sleeps would be promised and not kept.
    return RefusedWait(
        wait, fmt::format("{} waits busily, since each of its waits has a limit", plan.command),
        std::string(kLeaveOut));
  }
  if (plan.command == kEventVsPoll) {
    if (wait.kind == WaitKind::kBusy) return {};
    return RefusedWait(wait, fmt::format("{} compares ways of waiting", plan.command),
                       "name them with --modes");
  }
  if (FindOperation(plan.command) == nullptr) return {};
  const Operation operation = OperationOf(plan);
  if (operation.shape == LoopShape::kPayloadPing && wait.uses_events()) {
    return RefusedWait(wait,
                       "a plain WRITE makes no event at its target, which must poll its memory",
                       "add --imm, or have both sides wait busily");
  }
  const bool own_completions =
      (operation.shape == LoopShape::kRoundTrip && requester) ||
      (operation.shape == LoopShape::kStream && (requester || plan.bidirectional));
  if (own_completions && wait.kind == WaitKind::kSolicited) {
    return RefusedWait(wait,
                       fmt::format("{} waits for completions of its own requests, and only what a "
                                   "peer sends can be solicited",
                                   plan.command),
                       "use --wait event");
  }
  return {};
}

Status CheckCombination(const Plan& plan) {
  if (!plan.timer_codes.empty() && plan.command != kRnrTest) {
    return Fail(UsageError(fmt::format("--timer-codes: {} measures no RNR timers", plan.command),
                           {}, std::string(kLeaveOut)));
  }
  if (Status status = CheckCqPlan(plan); !status) return status;
  if (Status status = CheckNamesOf(plan); !status) return status;
  if (const StepCommand* steps = FindStepCommand(plan.command); steps != nullptr) {
    return CheckSteps(plan, *steps);
  }
  if (plan.command == kEventVsPoll) return CheckModeOptions(plan);
  const Operation operation = OperationOf(plan);
  for (const auto check : {CheckQueues, CheckRate, CheckSizesOf, CheckFlags}) {
    if (Status status = check(plan, operation); !status) return status;
  }
  return {};
}

}  // namespace verbscope
