#include "core/session/run_points.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/plan/step_commands.h"
#include "core/record/record_json.h"
#include "core/session/monitor.h"
#include "core/session/point_run.h"
#include "core/session/steps.h"

namespace verbscope {
namespace {

Status ExchangeSides(const SideState& side, PeerLink& link, Deadline deadline, Record& record) {
  const nlohmann::json frame = {{"type", "side"}, {"side", ToJson(side.record)}};
  if (Status status = SendFrame(link, frame, deadline); !status) return status;
  Expected<nlohmann::json> received = ReceiveFrame(link, "side", deadline);
  if (!received) return Fail(std::move(received.error()));
  Expected<SideRecord> remote = SideFromJson((*received)["side"]);
  if (!remote) return Fail(std::move(remote.error()));
  record.remote = std::move(*remote);
  return {};
}

void Keep(std::optional<Result> result, Record& record) {
  if (result) record.results.push_back(std::move(*result));
}

}  // namespace

Status RunPoints(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
                 const SessionContext& context, Deadline deadline, Farewell& farewell,
                 Record& record) {
  Monitor monitor(link, *side.device, context.interrupt, deadline);
  std::optional<uint64_t> passed_bytes;
  for (uint32_t run = 0; run < plan.repeat; ++run) {
    for (const uint64_t size : plan.sizes_bytes) {
      PointRun point(role, side, plan, link, monitor, deadline);
      Status status = point.Execute(size, run, passed_bytes);
      Keep(point.TakeOwn(), record);
      Keep(point.TakePeer(), record);
      if (!status) {
        return EndRun(std::move(status), side, link, context, deadline, farewell, record);
      }
      passed_bytes = std::max(passed_bytes.value_or(0), size);
    }
  }
  return EndRun({}, side, link, context, deadline, farewell, record);
}

Status EndRun(Status status, SideState& side, PeerLink& link, const SessionContext& context,
              Deadline deadline, Farewell& farewell, Record& record) {
  if (!status) {
    status = Fail(farewell.Conclude(
        OwnInterruptFirst(std::move(status.error()), context.interrupt.raised())));
  }
  FinishSide(side, context);
  record.local = side.record;
  return status ? ExchangeSides(side, link, deadline, record) : status;
}

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

void SetVerdict(Record& record) {
  TakeVerification(record);
  const bool steps = record.plan && FindStepCommand(record.plan->command) != nullptr;
  if (!record.error) steps ? JudgeChecks(record) : JudgeSamples(record);
  if (record.error) {
    record.verdict = "error";
    record.exit_code = ExitCode(record.error->error_class);
  } else {
    record.exit_code = record.verdict == "pass"   ? 0
                       : record.verdict == "fail" ? ExitCode(ErrorClass::kVerification)
                                                  : ExitCode(ErrorClass::kInconclusive);
  }
}

}  // namespace verbscope
