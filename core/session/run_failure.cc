#include "core/session/run_failure.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "core/causes/completion_failure.h"
#include "core/causes/completion_log.h"
#include "core/selection/gid_pair.h"
#include "core/session/steps.h"
#include "core/session/stop_error.h"

namespace verbscope {
namespace {

using std::chrono::milliseconds;

// After a failed completion the rest of the queues is flushed; how long to wait for that.
constexpr milliseconds kDrainTime(200);

Error Stopped(const FailedRun& run, StopReason reason) {
  return StopError(reason, run.link, run.monitor, run.plan);
}

// Adds what the completion does not say.
Error ExplainOne(const FailedRun& run, CompletionFailure failure, const LoopOutcome& outcome) {
  const size_t index = QpIndexOf(failure.wr_id);
  const bool received = KindOf(failure.wr_id) == WrKind::kRecv;
  const bool credit = KindOf(failure.wr_id) == WrKind::kCredit;
  failure.op = received ? "receive" : credit ? "SEND of receives given back" : run.operation.name;
  failure.size_bytes = credit ? 0 : run.size_bytes;
  // Streams and open loops number their requests, per QP; in a ping-pong it is the last one.
  const uint64_t sequence = SequenceOf(failure.wr_id);
  failure.message_number = sequence > 0 ? sequence : run.messages_before + outcome.sent;
  if (index < run.remote.qps.size()) failure.remote_qp_num = run.remote.qps[index].qpn;
  if (index < run.endpoint.qp_count()) {
    Expected<ibv_qp_state> state = run.side.device->QueryQpState(run.endpoint.qp(index));
    if (state) failure.qp_state = QpStateName(*state);
  }
  failure.link_layer = run.side.port.link_layer;
  failure.gid_pair =
      fmt::format("{} with {}", DescribeGid(run.side.gid), DescribeGid(run.remote.gid));
  failure.path_mtu_bytes = run.side.path_mtu_bytes;
  failure.passed_bytes = run.passed_bytes;
  failure.timeout_code = run.plan.timeout_code;
  failure.retry_count = run.plan.retry_count;
  failure.rnr_timer_code = run.plan.rnr_timer_code;
  failure.rnr_retry = run.plan.rnr_retry;
  Error error = ExplainCompletion(failure);
  if (const std::optional<std::string> event = run.monitor.device_event(); event) {
    error.message += fmt::format("; the device reported {}", *event);
  }
  return error;
}

std::string MismatchText(const LoopMismatch& mismatch) {
  switch (mismatch.kind) {
    case LoopMismatch::Kind::kAtomicResult:
      return fmt::format("Atomic {} returned {}, its target held {}", mismatch.message,
                         mismatch.got, mismatch.expected);
    case LoopMismatch::Kind::kOutOfOrder:
      return fmt::format(
          "a completion came out of order: for request {} of its QP, after {} were complete",
          mismatch.got, mismatch.message);
    case LoopMismatch::Kind::kNoCompletion:
      return fmt::format(
          "{} of the signalled requests never completed, though later ones of their QP did",
          mismatch.expected);
    case LoopMismatch::Kind::kWrongCompletion:
      return fmt::format("a completion came with wr_id part {}, which was not posted",
                         mismatch.got);
    case LoopMismatch::Kind::kNone:
      break;
  }
  return "an answer of the device was wrong";
}

Error MismatchError(const FailedRun& run, const LoopMismatch& mismatch) {
  Error error;
  error.error_class = ErrorClass::kVerification;
  error.message =
      fmt::format("{} of {} bytes: {}", run.operation.name, run.size_bytes, MismatchText(mismatch));
  error.cause = fmt::format("{} or its driver breaks a promise of the verbs interface",
                            run.side.device->info().name);
  error.next_step = "run it again; compare with another device, driver or firmware";
  return error;
}

// What fails after the port went down says nothing more than that.
bool PortDown(const Monitor& monitor) {
  const std::string event = monitor.device_event().value_or("");
  return event.starts_with("PORT_ERR") || event.starts_with("DEVICE_FATAL");
}

}  // namespace

Error ExplainFailure(const FailedRun& run, const LoopOutcome& outcome) {
  if (outcome.end == LoopEnd::kMismatch) return MismatchError(run, outcome.mismatch);
  if (outcome.end == LoopEnd::kPollFailed && outcome.wait_error) return *outcome.wait_error;
  if (outcome.end == LoopEnd::kPollFailed) {
    Error error = CallError(ErrorClass::kRun, "ibv_poll_cq", run.side.device->info().name, EIO);
    error.cause = "the device or its driver reset, or the CQ overran";
    return error;
  }
  // Every queue may hold the first real error: a receive is often flushed before the failed send is
  // looked at.
  CompletionLog log;
  for (size_t i = 0; i < run.endpoint.qp_count(); ++i) {
    const uint64_t others = std::max(outcome.received, outcome.samples) + run.messages_before;
    log.AddSuccesses(run.endpoint.qp(i)->qp_num,
                     run.operation.shape == LoopShape::kStream ? run.endpoint.taken(i) : others);
  }
  const bool failed_completion =
      outcome.end == LoopEnd::kSendFailed || outcome.end == LoopEnd::kRecvFailed;
  if (failed_completion) log.Add(outcome.failure);
  const StopReason reason = run.monitor.stop().reason();
  // Someone else saw the fault first: this side's own completion may be a moment behind.
  const bool look =
      failed_completion || reason == StopReason::kDevice || reason == StopReason::kPeerLost;
  DrainCompletions(run.endpoint, log, Deadline::After(look ? kDrainTime : milliseconds(0)));
  std::optional<CompletionFailure> failure = log.FirstFailure();
  if (PortDown(run.monitor)) return Stopped(run, StopReason::kDevice);
  // A flush explains a stop that was asked for no better than its own reason does; nor does an
  // answer that never came, once the peer has said that it gives up.
  const bool asked_to_stop = run.monitor.stop().reason() != StopReason::kNone;
  const bool echo =
      failure && (failure->status == IBV_WC_WR_FLUSH_ERR ||
                  (failure->status == IBV_WC_RETRY_EXC_ERR && reason == StopReason::kPeerLost));
  if (failure && !(echo && asked_to_stop)) return ExplainOne(run, *std::move(failure), outcome);
  if (outcome.end == LoopEnd::kPostFailed) {
    Error error = CallError(ErrorClass::kRun, "ibv_post_send or ibv_post_recv",
                            fmt::format("message {}", run.messages_before + outcome.sent + 1),
                            outcome.post_errno);
    error.cause = outcome.post_errno == ENOMEM ? "the queue is full" : "the QP is in error";
    return error;
  }
  return Stopped(run, run.monitor.stop().reason());
}

}  // namespace verbscope
