#include "core/session/verdict.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/causes/diagnosis.h"
#include "core/plan/operation.h"
#include "core/plan/step_commands.h"
#include "core/record/outcome.h"

namespace verbscope {
namespace {

void Fault(std::string message, Record& record) {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = std::move(message);
  record.error = std::move(error);
}

// A check says something unless it was skipped.
void JudgeChecks(Record& record) {
  if (record.checks.empty()) return Fault("the run ended without a single check", record);
  const auto any = [&record](std::string_view status) {
    return std::ranges::any_of(record.checks,
                               [status](const CheckRow& row) { return row.status == status; });
  };
  record.verdict = any("fail") ? "fail" : any("pass") || any("deviation") ? "pass" : "inconclusive";
}

CheckRow VerificationRow() {
  CheckRow row;
  row.name = "verification";
  row.expected = "data, results and completions as the verbs interface promises";
  return row;
}

std::string VerifiedText(const Operation& operation) {
  if (operation.verb == Verb::kAtomic) return "the value that each Atomic returned";
  if (operation.shape == LoopShape::kPayloadPing) {
    return "every byte of what landed last in each phase but the last one, which is its number, "
           "and nothing beyond it";
  }
  return "every byte of what landed last in each phase, and nothing beyond it";
}

// A broken promise that stopped a measuring run is a failed check, on both sides.
void TakeVerification(Record& record) {
  if (!record.error || record.error->error_class != ErrorClass::kVerification) return;
  CheckRow row = VerificationRow();
  row.status = "fail";
  row.observed =
      (record.error->side == Side::kPeer ? "on the other side: " : "") + record.error->message;
  row.why = record.error->cause;
  record.checks.push_back(std::move(row));
  record.error.reset();
}

void JudgeSamples(Record& record) {
  const bool verified = std::ranges::find(record.checks, VerificationRow().name, &CheckRow::name) !=
                        record.checks.end();
  if (verified) return JudgeChecks(record);
  const bool samples = std::ranges::any_of(record.results, [](const Result& result) {
    const Metrics& metrics = result.metrics;
    return result.complete && ((metrics.latency && metrics.latency->samples > 0) ||
                               (metrics.bandwidth && metrics.bandwidth->messages > 0));
  });
  if (!samples) return Fault("the run ended without a single sample", record);
  if (!record.checks.empty()) return JudgeChecks(record);
  record.verdict = "pass";
  if (!record.plan || !record.plan->verify) return;
  CheckRow row = VerificationRow();
  row.status = "pass";
  row.observed = VerifiedText(OperationOf(*record.plan));
  record.checks.push_back(std::move(row));
}

}  // namespace

void SetVerdict(Record& record, OnInconclusive policy) {
  TakeVerification(record);
  const bool steps = record.plan && FindStepCommand(record.plan->command) != nullptr;
  if (!record.error) steps ? JudgeChecks(record) : JudgeSamples(record);
  if (record.error) {
    SetError(*record.error, record);
  } else {
    SetOutcome(record.verdict, record);
    CountGates(policy, record);
  }
  AddCauses(record);
}

}  // namespace verbscope
