#include "core/session/point_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "core/causes/completion_failure.h"
#include "core/causes/completion_log.h"
#include "core/record/record_json.h"
#include "core/selection/gid_pair.h"
#include "core/session/latency_metrics.h"
#include "core/session/messages.h"
#include "core/session/steps.h"

namespace verbscope {
namespace {

using std::chrono::milliseconds;

// After a failed completion the rest of the queues is flushed; how long to wait for that.
constexpr milliseconds kDrainTime(200);

LoopLength WarmupLength(const Plan& plan, const Clock& clock) {
  LoopLength length;
  if (plan.warmup_iterations) {
    length.messages = *plan.warmup_iterations;
  } else {
    length.ticks = clock.scale().Ticks(static_cast<uint64_t>(plan.warmup_ns));
    if (plan.warmup_ns == 0) length.messages = 0;
  }
  return length;
}

LoopLength MeasuredLength(const Plan& plan, const Clock& clock) {
  LoopLength length;
  if (plan.iterations) {
    length.messages = *plan.iterations;
  } else {
    length.ticks = clock.scale().Ticks(static_cast<uint64_t>(plan.duration_ns));
  }
  return length;
}

}  // namespace

Status PointRun::Execute(uint64_t size_bytes, uint32_t run, std::optional<uint64_t> passed_bytes) {
  size_bytes_ = size_bytes;
  run_ = run;
  passed_bytes_ = passed_bytes;
  if (Status status = Connect(size_bytes); !status) return status;
  const LoopLength warmup = WarmupLength(plan_, side_.clock);
  if (warmup.messages > 0) {
    if (Status status = RunPhase({.length = warmup, .measured = false}); !status) return status;
  }
  const Phase measured = {.length = MeasuredLength(plan_, side_.clock), .measured = true};
  if (Status status = RunPhase(measured); !status) return status;
  if (Status status = ExchangeResults(); !status) return status;
  // Both sides tear down only after both have everything: a QP that vanishes early would answer the
  // other side's last retransmission with silence.
  if (Status status = Barrier(link_, "teardown", deadline_); !status) return status;
  return endpoint_->Close();
}

Status PointRun::Connect(uint64_t size_bytes) {
  Expected<std::unique_ptr<Endpoint>> endpoint =
      Endpoint::Create(*side_.device, plan_,
                       {.size_bytes = size_bytes,
                        .wait = side_.settings.wait,
                        .comp_vector = side_.settings.comp_vector,
                        .numa_node = side_.settings.numa_node,
                        .huge_pages = side_.settings.huge_pages,
                        .path = side_.Path()});
  if (!endpoint) return Fail(std::move(endpoint.error()));
  endpoint_ = std::move(*endpoint);
  if (Status status = endpoint_->PostReceives(); !status) return status;
  if (Status status = SendFrame(link_, ToJson(endpoint_->Info()), deadline_); !status)
    return status;
  Expected<nlohmann::json> frame = ReceiveFrame(link_, "endpoint", deadline_);
  if (!frame) return Fail(std::move(frame.error()));
  Expected<EndpointInfo> remote = EndpointInfoFromJson(*frame);
  if (!remote) return Fail(std::move(remote.error()));
  remote_ = std::move(*remote);
  if (Status status = endpoint_->Connect(remote_); !status) return status;
  return Barrier(link_, "ready", deadline_);
}

Status PointRun::RunPhase(const Phase& phase) {
  const Clock& clock = side_.clock;
  const double share = operation_.shape == LoopShape::kPingPong ? 0.5 : 1.0;  // of what is timed
  const auto recorder = std::make_unique<IntervalRecorder>(
      clock.scale(share), clock.scale(1.0),
      clock.scale().Ticks(static_cast<uint64_t>(plan_.interval_ns)));
  LoopLength length;  // of the responder: until it is stopped
  if (role_ == LoopRole::kRequester) length = phase.length;

  monitor_.Watch(recorder.get());
  const ThreadUsage before = ThreadUsage::Now();
  const LoopOutcome outcome = RunLoop(length, *recorder);
  const ThreadUsage usage = ThreadUsage::Now() - before;
  monitor_.Watch(nullptr);
  recorder->Finish(outcome.last_ticks);

  if (phase.measured) {
    FillResult(outcome, *recorder, usage);
  } else if (measures()) {
    warmup_ = MakeLatencyMetrics(recorder->total(), operation_);
  }
  const bool done =
      role_ == LoopRole::kRequester
          ? outcome.end == LoopEnd::kComplete
          : outcome.end == LoopEnd::kStopped && monitor_.stop().reason() == StopReason::kDone;
  if (!done) return Fail(FailureOf(outcome));
  if (Status status = EndPhase(outcome); !status) return status;
  messages_before_ += outcome.received;
  if (phase.measured) own_->complete = true;
  return {};
}

LoopOutcome PointRun::RunLoop(const LoopLength& length, IntervalRecorder& recorder) {
  const WaitMode wait = side_.settings.wait;
  if (operation_.shape == LoopShape::kPingPong) {
    PingPongSetup setup = endpoint_->PingPong(monitor_.stop(), recorder);
    setup.shares_cpu = side_.shares_cpu;
    return RunPingPong(role_, setup, length, wait, side_.clock);
  }
  RoundTripSetup setup = endpoint_->RoundTrips(monitor_.stop(), recorder);
  setup.shares_cpu = side_.shares_cpu;
  return role_ == LoopRole::kRequester ? RunRoundTrips(setup, length, wait, side_.clock)
                                       : RunServed(setup, wait, side_.clock);
}

// The requester says how many round trips it made; the responder must have seen as many.
Status PointRun::EndPhase(const LoopOutcome& outcome) {
  if (role_ == LoopRole::kRequester) {
    const nlohmann::json done = {{"type", "done"}, {"samples", outcome.samples}};
    if (Status status = SendFrame(link_, done, deadline_); !status) return status;
  } else {
    Expected<nlohmann::json> done = ReceiveFrame(link_, "done", deadline_);
    if (!done) return Fail(std::move(done.error()));
    const Expected<uint64_t> samples = Unsigned(*done, "samples", 0, UINT64_MAX);
    if (!samples) return Fail(samples.error());
    if (measures() && *samples != outcome.samples) {
      Error error;
      error.error_class = ErrorClass::kRun;
      error.message = fmt::format(
          "the requester measured {} round trips, but {} messages were received and answered here",
          *samples, outcome.samples);
      error.cause = "messages were lost or doubled below the verbs interface";
      error.next_step = fmt::format(
          "run `verbscope {}` again and compare; check the device's firmware", plan_.command);
      return Fail(std::move(error));
    }
    monitor_.stop().Reset();
  }
  return Barrier(link_, "phase", deadline_);
}

Status PointRun::ExchangeResults() {
  nlohmann::json frame = {{"type", "result"}, {"result", ToJson(*own_, ResultForm::kWire)}};
  if (Status status = SendFrame(link_, frame, deadline_); !status) return status;
  Expected<nlohmann::json> received = ReceiveFrame(link_, "result", deadline_);
  if (!received) return Fail(std::move(received.error()));
  Expected<Result> result = ResultFromJson((*received)["result"]);
  if (!result) return Fail(std::move(result.error()));
  peer_ = std::move(*result);
  return {};
}

Point PointRun::MakePoint() const {
  const WaitMode wait = side_.settings.wait;
  Point point;
  point.op = operation_.op;
  point.size_bytes = size_bytes_;
  point.qps = plan_.qps;
  point.wait = wait.kind == WaitKind::kHybrid ? "hybrid" : ToText(wait);
  if (wait.kind == WaitKind::kHybrid) point.spin_ns = wait.spin_ns;
  point.tx_depth = plan_.tx_depth;
  return point;
}

void PointRun::FillResult(const LoopOutcome& outcome, IntervalRecorder& recorder,
                          const ThreadUsage& usage) {
  Result result;
  result.point = MakePoint();
  result.side = role_ == LoopRole::kRequester ? "requester" : "responder";
  result.run = run_;
  result.complete = false;  // until the phase has ended as planned
  if (measures()) result.metrics.latency = MakeLatencyMetrics(recorder.total(), operation_);
  result.metrics.warmup = std::move(warmup_);

  const double seconds = static_cast<double>(side_.clock.scale(1.0).Nanoseconds(
                             outcome.last_ticks - outcome.first_ticks)) *
                         1e-9;
  const auto messages = static_cast<double>(outcome.samples);
  if (measures()) {
    LoadMetrics load;
    if (seconds > 0) load.achieved_per_s = messages / seconds;
    result.metrics.load = load;
  }

  CpuMetrics cpu;
  cpu.cpu_s = static_cast<double>(usage.cpu_ns) * 1e-9;
  if (seconds > 0) cpu.utilization = std::min(1.0, cpu.cpu_s / seconds);
  if (outcome.samples > 0) cpu.us_per_message = cpu.cpu_s * 1e6 / messages;
  cpu.voluntary_switches = static_cast<uint64_t>(usage.voluntary_switches);
  cpu.involuntary_switches = static_cast<uint64_t>(usage.involuntary_switches);
  cpu.events = outcome.wait.events;
  cpu.empty_wakeups = outcome.wait.empty_wakeups;
  cpu.lost_wakeups = outcome.wait.lost_wakeups;
  if (outcome.wait.events > 0) {
    cpu.completions_per_event =
        static_cast<double>(outcome.received) / static_cast<double>(outcome.wait.events);
  }
  result.metrics.cpu = cpu;
  result.intervals = recorder.TakeRows();
  own_ = std::move(result);
}

Error PointRun::FailureOf(const LoopOutcome& outcome) {
  if (outcome.end == LoopEnd::kPollFailed && outcome.wait_error) return *outcome.wait_error;
  if (outcome.end == LoopEnd::kPollFailed) {
    Error error = CallError(ErrorClass::kRun, "ibv_poll_cq", side_.device->info().name, EIO);
    error.cause = "the device or its driver reset, or the CQ overran";
    return error;
  }
  // Every queue may hold the first real error: a receive is often flushed before the failed send is
  // looked at.
  CompletionLog log;
  log.AddSuccesses(endpoint_->qp()->qp_num, messages_before_ + outcome.received);
  const bool failed_completion =
      outcome.end == LoopEnd::kSendFailed || outcome.end == LoopEnd::kRecvFailed;
  if (failed_completion) log.Add(outcome.failure);
  const StopReason reason = monitor_.stop().reason();
  // Someone else saw the fault first: this side's own completion may be a moment behind.
  const bool look =
      failed_completion || reason == StopReason::kDevice || reason == StopReason::kPeerLost;
  DrainCompletions(*endpoint_, log, Deadline::After(look ? kDrainTime : milliseconds(0)));
  std::optional<CompletionFailure> failure = log.FirstFailure();
  // A flush explains a stop that was asked for no better than its own reason does; nor does an
  // answer that never came, once the peer has said that it gives up.
  const bool asked_to_stop = monitor_.stop().reason() != StopReason::kNone;
  // What fails after the port went down says nothing more than that.
  const std::string event = monitor_.device_event().value_or("");
  if (event.starts_with("PORT_ERR") || event.starts_with("DEVICE_FATAL")) {
    return StopError(StopReason::kDevice);
  }
  const bool echo =
      failure && (failure->status == IBV_WC_WR_FLUSH_ERR ||
                  (failure->status == IBV_WC_RETRY_EXC_ERR && reason == StopReason::kPeerLost));
  if (failure && !(echo && asked_to_stop)) {
    return ExplainFailure(*std::move(failure), outcome);
  }
  if (outcome.end == LoopEnd::kPostFailed) {
    Error error = CallError(ErrorClass::kRun, "ibv_post_send or ibv_post_recv",
                            fmt::format("message {}", messages_before_ + outcome.sent + 1),
                            outcome.post_errno);
    error.cause = outcome.post_errno == ENOMEM ? "the queue is full" : "the QP is in error";
    return error;
  }
  return StopError(monitor_.stop().reason());
}

// Adds what the completion does not say.
Error PointRun::ExplainFailure(CompletionFailure failure, const LoopOutcome& outcome) {
  failure.op = failure.wr_id == kSendWrId ? std::string(operation_.name) : "receive";
  failure.size_bytes = size_bytes_;
  failure.message_number = messages_before_ + outcome.sent;
  failure.remote_qp_num = remote_.qps.front().qpn;
  if (Expected<ibv_qp_state> state = side_.device->QueryQpState(endpoint_->qp()); state) {
    failure.qp_state = QpStateName(*state);
  }
  failure.link_layer = side_.port.link_layer;
  failure.gid_pair = fmt::format("{} with {}", DescribeGid(side_.gid), DescribeGid(remote_.gid));
  failure.path_mtu_bytes = side_.path_mtu_bytes;
  failure.passed_bytes = passed_bytes_;
  failure.timeout_code = plan_.timeout_code;
  failure.retry_count = plan_.retry_count;
  failure.rnr_timer_code = plan_.rnr_timer_code;
  failure.rnr_retry = plan_.rnr_retry;
  Error error = ExplainCompletion(failure);
  if (const std::optional<std::string> event = monitor_.device_event(); event) {
    error.message += fmt::format("; the device reported {}", *event);
  }
  return error;
}

Error PointRun::StopError(StopReason reason) {
  Error error;
  error.error_class = ErrorClass::kRun;
  switch (reason) {
    case StopReason::kInterrupted:
      return InterruptedError();
    case StopReason::kDeadline:
      return DeadlineError(plan_);
    case StopReason::kDevice:
      error.message = fmt::format("the device reported: {}", monitor_.device_event().value_or(""));
      error.cause = "the port or its netdev went down, or the device failed";
      error.next_step =
          "look at the cable, at `ip link` and at the kernel log (dmesg) of both hosts";
      return error;
    case StopReason::kPeerLost: {
      // The link knows how: an abort with the peer's own error, or the way the connection ended.
      Expected<nlohmann::json> frame =
          ReceiveFrame(link_, "barrier", Deadline::After(std::chrono::seconds(1)));
      if (!frame) return std::move(frame.error());
      break;
    }
    case StopReason::kDone:
      error.message = "the peer ended the run early";
      return error;
    case StopReason::kNone:
      break;
  }
  error.error_class = ErrorClass::kInternal;
  error.message = "the measuring loop ended without a reason";
  return error;
}

}  // namespace verbscope
