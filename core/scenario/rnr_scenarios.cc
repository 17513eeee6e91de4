// `rnr-test`: a receiver that is not ready. How long the sender waits after each RNR NAK, when it
// gives up, that it does not when the receiver comes back, and what starvation costs.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/causes/rc_timers.h"
#include "core/plan/rnr_plan.h"
#include "core/scenario/lists.h"
#include "core/scenario/expectations.h"
#include "core/scenario/rnr_attempt.h"
#include "core/scenario/rnr_steps.h"
#include "core/scenario/rnr_timers.h"

namespace verbscope {
namespace {

constexpr const char* kExhaustedSource =
    "IBTA vol. 1, 9.7.5.2.8: rnr_retry waits, then an error of the sender; ibv_post_send(3): the "
    "rest is flushed in order";
constexpr const char* kWriteSource =
    "ibv_post_send(3): RDMA_WRITE_WITH_IMM takes a receive; IBTA vol. 1, 9.7.5.2.8: without one "
    "RNR NAK";

// What a step runs on both sides; the requester alone has something to say.
template <class Run>
Scenario BothSides(std::string name, Run run) {
  return {.name = std::move(name), .requester = run, .responder = run};
}

RnrAttempt AttemptOf(const RnrKind& kind, const RnrOutcome& outcome) {
  return {.rnr_retry = kind.rnr_retry,
          .predicted_ns = RnrTimerNs(kind.timer_code) * kind.rnr_retry,
          .time_to_error_ns = TimeToError(outcome),
          .naks = outcome.naks};
}

void KeepRnr(Stage& stage, uint32_t timer_code, uint32_t in_flight, std::string variant,
             RnrMetrics rnr) {
  Result result;
  result.point = RnrPoint(stage, timer_code, in_flight, std::move(variant));
  result.metrics.rnr = std::move(rnr);
  stage.Keep(std::move(result));
}

// What is wrong with an attempt that should use up its retries; empty: nothing. The device's count
// must agree where there is one: today the soft device's, which sees this run only.
std::string Wrong(const RnrKind& kind, const RnrOutcome& outcome) {
  std::string wrong = WrongCompletions(outcome, kind.receives, kind.sends);
  if (!wrong.empty()) return wrong;
  if (outcome.naks && *outcome.naks != kind.rnr_retry + 1) {
    return fmt::format("{} NAKs, not one for each of {} tries", *outcome.naks, kind.rnr_retry + 1);
  }
  if (outcome.received != kind.receives || !outcome.failed.empty()) {
    return fmt::format("the responder has {} good receive completions{}, not {}", outcome.received,
                       outcome.failed.empty() ? "" : " and one of " + outcome.failed,
                       kind.receives);
  }
  if (outcome.state != "RTS") return "the responder's queue pair is in state " + outcome.state;
  return "";
}

std::string TriesText(const std::optional<uint64_t>& naks) {
  return naks ? fmt::format(", {} tr{}", *naks, *naks == 1 ? "y" : "ies") : "";
}

std::string FlushText(uint32_t sends) {
  return sends > 1 ? fmt::format(", then {} WR_FLUSH_ERR in order", sends - 1) : "";
}

// The check of an attempt whose first `receives` messages succeed.
CheckRow ExhaustedRow(const Stage& stage, std::string name, const RnrKind& kind,
                      const RnrOutcome& outcome) {
  const RnrAttempt attempt = AttemptOf(kind, outcome);
  const std::string before = kind.receives > 0 ? fmt::format("{} SUCCESS, ", kind.receives) : "";
  const uint32_t rest = kind.sends - kind.receives;
  CheckRow row{.name = std::move(name),
               .expected = fmt::format(
                   "{}RNR_RETRY_EXC_ERR after {} wait{}, {} or longer{}; the responder unharmed",
                   before, kind.rnr_retry, kind.rnr_retry == 1 ? "" : "s",
                   MillisecondsText(attempt.predicted_ns), FlushText(rest)),
               .source = kExhaustedSource};
  std::string wrong = Wrong(kind, outcome);
  if (wrong.empty() && TooEarly({&attempt, 1}, WaitLimitsOf(stage.requester_kind()).short_ns)) {
    wrong = fmt::format("the error came after {}, before {} of waits can have been over",
                        MillisecondsText(*attempt.time_to_error_ns),
                        MillisecondsText(attempt.predicted_ns));
  }
  row.status = wrong.empty() ? "pass" : "fail";
  row.observed =
      !wrong.empty()
          ? wrong
          : fmt::format(
                "{}RNR_RETRY_EXC_ERR (13) after {}, {} predicted{}{}; the responder in RTS "
                "with {}",
                before, MillisecondsText(attempt.time_to_error_ns.value_or(0)),
                MillisecondsText(attempt.predicted_ns), TriesText(outcome.naks), FlushText(rest),
                kind.receives > 0 ? "those receives" : "no completion");
  return row;
}

Status SweepTimer(Stage& stage, uint32_t code) {
  RnrMetrics rnr{.nominal_ns = RnrTimerNs(code)};
  const TimerSweep sweep = SweepOf(code, stage.plan().quick);
  std::string wrong;
  bool going = true;
  for (size_t i = 0; going && i < sweep.retries.size() * sweep.repeats; ++i) {
    const RnrKind kind{.timer_code = code, .rnr_retry = sweep.retries[i / sweep.repeats]};
    Expected<RnrOutcome> outcome = RunOutOfReceives(stage, kind);
    if (!outcome) return Fail(std::move(outcome.error()));
    going = outcome->came;
    if (!stage.requester()) continue;
    rnr.attempts.push_back(AttemptOf(kind, *outcome));
    if (wrong.empty()) wrong = Wrong(kind, *outcome);
  }
  if (!stage.requester()) return {};
  Conclude(rnr);
  CheckRow row{.name = stage.name()};
  JudgeWaits(stage.requester_kind(), rnr, row);
  if (!wrong.empty() && (row.status != "fail" || !going)) {
    row.status = "fail";
    row.observed = wrong;
  }
  stage.Check(std::move(row));
  KeepRnr(stage, code, 1, "retries used up", std::move(rnr));
  return {};
}

Status Exhaust(Stage& stage) {
  const uint32_t code = stage.plan().rnr_timer_code;
  RnrMetrics rnr{.nominal_ns = RnrTimerNs(code)};
  bool going = true;
  for (uint32_t retry = 0; going && retry <= kLastFiniteRetry; ++retry) {
    const RnrKind kind{.timer_code = code, .rnr_retry = retry, .sends = kExhaustionSends};
    Expected<RnrOutcome> outcome = RunOutOfReceives(stage, kind);
    if (!outcome) return Fail(std::move(outcome.error()));
    going = outcome->came;
    if (!stage.requester()) continue;
    rnr.attempts.push_back(AttemptOf(kind, *outcome));
    stage.Check(ExhaustedRow(stage, fmt::format("exhaustion-retry-{}", retry), kind, *outcome));
  }
  if (!stage.requester()) return {};
  Conclude(rnr);
  KeepRnr(stage, code, kExhaustionSends, "retries used up, others behind", std::move(rnr));
  return {};
}

Status Starve(Stage& stage) {
  const RnrKind kind{.timer_code = stage.plan().rnr_timer_code,
                     .rnr_retry = 1,
                     .sends = kStarvationSends,
                     .receives = kStarvationReceives};
  Expected<RnrOutcome> outcome = RunOutOfReceives(stage, kind);
  if (!outcome) return Fail(std::move(outcome.error()));
  if (stage.requester()) stage.Check(ExhaustedRow(stage, stage.name(), kind, *outcome));
  return {};
}

// Whether the data is there although the request failed is up to the device: it is told, not
// judged.
Status WriteWithoutReceive(Stage& stage) {
  const RnrKind kind{.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                     .timer_code = stage.plan().rnr_timer_code,
                     .rnr_retry = std::min(stage.plan().rnr_retry, kLastFiniteRetry)};
  Expected<RnrOutcome> outcome = RunOutOfReceives(stage, kind);
  if (!outcome) return Fail(std::move(outcome.error()));
  if (!stage.requester()) return {};
  CheckRow row = ExhaustedRow(stage, stage.name(), kind, *outcome);
  row.source = kWriteSource;
  const char* data = outcome->data == "all" ? "its data is in the responder's memory all the same"
                     : outcome->data == "none" ? "its data is not in the responder's memory"
                                               : "a part of its data is in the responder's memory";
  row.observed += fmt::format("; {}", data);
  stage.Check(std::move(row));
  return {};
}

}  // namespace

std::vector<Scenario> RnrScenarios(const Plan& plan) {
  std::vector<Scenario> scenarios;
  for (const uint32_t code : TimerCodesOf(plan)) {
    scenarios.push_back(BothSides(fmt::format("timer-code-{}", code),
                                  [code](Stage& stage) { return SweepTimer(stage, code); }));
  }
  scenarios.push_back(BothSides("exhaustion", Exhaust));
  scenarios.push_back(RnrRecovery());
  scenarios.push_back(BothSides("starvation", Starve));
  for (const uint32_t code : StarvedCodes(plan)) scenarios.push_back(RnrStarved(code));
  scenarios.push_back(BothSides("write-imm-no-receive", WriteWithoutReceive));
  return scenarios;
}

}  // namespace verbscope
