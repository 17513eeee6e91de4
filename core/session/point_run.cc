#include "core/session/point_run.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/endpoint/payload.h"
#include "core/record/record_json.h"
#include "core/session/device_counters.h"
#include "core/session/latency_metrics.h"
#include "core/session/messages.h"
#include "core/session/run_failure.h"
#include "core/session/steps.h"

namespace verbscope {
namespace {

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

// What the payload of one phase and direction is made from.
uint64_t PayloadSeed(uint32_t run, uint64_t size_bytes, bool measured, LoopRole sender) {
  return (size_bytes << 24) + (uint64_t{run} << 2) + (measured ? 2 : 0) +
         (sender == LoopRole::kRequester ? 1 : 0);
}

LoopRole Other(LoopRole role) {
  return role == LoopRole::kRequester ? LoopRole::kResponder : LoopRole::kRequester;
}

Error PayloadError(const Operation& operation, uint64_t size_bytes, std::string_view where,
                   const PayloadMismatch& mismatch) {
  Error error;
  error.error_class = ErrorClass::kVerification;
  error.message =
      fmt::format("{} of {} bytes: {} {} is 0x{:02x}, expected 0x{:02x}", operation.name,
                  size_bytes, where, mismatch.offset, mismatch.got, mismatch.expected);
  error.cause = "data was damaged, lost or misplaced below the verbs interface";
  error.next_step = "run it again with other --size values to see which bytes and sizes it hits";
  return error;
}

}  // namespace

Status PointRun::Execute(uint64_t size_bytes, uint32_t run, std::optional<uint64_t> passed_bytes,
                         const More& more) {
  size_bytes_ = size_bytes;
  run_ = run;
  passed_bytes_ = passed_bytes;
  // With both sides sending, the other's end is not this side's; and it may come before this side
  // has even begun.
  monitor_.HoldDone(plan_.bidirectional);
  const auto held_back_us = plan_.moderations.empty() ? 0 : plan_.moderations.front().period_us;
  monitor_.stop().set_late_events_ms((held_back_us + 999) / 1000);
  if (Status status = Connect(size_bytes); !status) return status;
  const LoopLength warmup = WarmupLength(plan_, side_.clock);
  if (warmup.messages > 0) {
    if (Status status = RunPhase(warmup, /*measured=*/false); !status) return status;
  }
  if (Status status = RunPhase(MeasuredLength(plan_, side_.clock), /*measured=*/true); !status) {
    return status;
  }
  if (Status status = ExchangeResults(); !status) return status;
  if (plan_.extend_to_ns > 0) {
    if (Status status = Extend(more); !status) return status;
  }
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

Status PointRun::RunPhase(LoopLength length, bool measured) {
  if (plan_.verify) {
    PreparePayload(measured);
    if (Status status = Barrier(link_, "payload", deadline_); !status) return status;
  }
  Phase phase(role_, operation_, plan_, side_, *endpoint_, monitor_);
  std::optional<DeviceCounters> counters;
  if (measured) {
    counters.emplace(*side_.device, side_.port.number);
    // Reading may take one side longer than the other, which must not send to one that is not
    // there.
    if (Status status = Barrier(link_, "counters", deadline_); !status) return status;
  }
  const CpuAccount account;
  LoopOutcome outcome = phase.Run(length);
  CpuMetrics cpu = CloseAccount(account, outcome);
  phase.Finish(outcome);
  const bool done = part_.sends ? outcome.end == LoopEnd::kComplete : WasDone(outcome);
  Status status = done ? FinishTogether(phase, outcome) : Fail(FailureOf(outcome));
  if (measured) {
    FillResult({.latency = phase.latency(),
                .bandwidth = phase.Bandwidth(),
                .intervals = phase.TakeIntervals(),
                .cpu = std::move(cpu),
                .samples = outcome.samples,
                .messages = part_.sends ? outcome.samples : outcome.received,
                .seconds = SecondsOf(outcome),
                .late_sends = outcome.late_sends,
                .counters = counters->Changes()});
  } else {
    if (phase.latency() != nullptr) {
      warmup_ = MakeLatencyMetrics(phase.latency()->total(), operation_);
    }
    warmup_bandwidth_ = phase.Bandwidth();
  }
  if (status && plan_.verify) status = CheckPayload(measured);
  if (!status) return status;
  messages_before_ += std::max(outcome.sent, outcome.received);
  if (measured) own_->complete = true;
  return {};
}

bool PointRun::WasDone(const LoopOutcome& outcome) const {
  return outcome.end == LoopEnd::kStopped && monitor_.stop().reason() == StopReason::kDone;
}

// Each side that sends says how many messages it sent; the other must have seen as many.
Status PointRun::FinishTogether(Phase& phase, LoopOutcome& outcome) {
  if (part_.sends) {
    const nlohmann::json done = {{"type", "done"}, {"sent", outcome.sent}};
    if (Status status = SendFrame(link_, done, deadline_); !status) return status;
  }
  if (plan_.bidirectional) {
    monitor_.HoldDone(false);
    const LoopOutcome tail = phase.RunTail();
    if (!WasDone(tail)) return Fail(FailureOf(tail));
    outcome.received += tail.received;
  }
  if (!part_.sends || plan_.bidirectional) {
    Expected<nlohmann::json> done = ReceiveFrame(link_, "done", deadline_);
    if (!done) return Fail(std::move(done.error()));
    const Expected<uint64_t> sent = Unsigned(*done, "sent", 0, UINT64_MAX);
    if (!sent) return Fail(sent.error());
    if (Status status = TakeLast(phase, *sent, outcome); !status) return status;
    monitor_.Reset();
    monitor_.HoldDone(plan_.bidirectional);
  }
  return Barrier(link_, "phase", deadline_);
}

Status PointRun::TakeLast(Phase& phase, uint64_t sent, LoopOutcome& outcome) {
  if (!part_.receives) return {};
  if (operation_.shape == LoopShape::kStream && outcome.received < sent) {
    const LoopOutcome last = phase.Drain(sent - outcome.received);
    outcome.received += last.received;
    if (last.end != LoopEnd::kComplete && last.end != LoopEnd::kStopped) {
      return Fail(FailureOf(last));
    }
  }
  if (outcome.received == sent) return {};
  Error error;
  error.error_class = ErrorClass::kVerification;
  error.message = fmt::format("the other side sent {} messages of {} bytes, {} were received here",
                              sent, size_bytes_, outcome.received);
  error.cause = "completions or messages were lost or doubled below the verbs interface";
  error.next_step = fmt::format("run `verbscope {}` again and compare; check the device's firmware",
                                plan_.command);
  return Fail(std::move(error));
}

// The last byte of a payload ping is its number.
std::span<std::byte> PointRun::Verified(std::span<std::byte> part) const {
  const bool numbered = operation_.shape == LoopShape::kPayloadPing && !part.empty();
  return part.first(part.size() - (numbered ? 1 : 0));
}

bool PointRun::DataLandsHere() const {
  switch (operation_.verb) {
    case Verb::kSend:
    case Verb::kWrite:
      return role_ == LoopRole::kResponder || operation_.shape != LoopShape::kStream ||
             plan_.bidirectional;
    case Verb::kRead:
      return part_.sends;
    case Verb::kAtomic:
      return false;  // the loop checks every result
  }
  return false;
}

void PointRun::PreparePayload(bool measured) {
  if (operation_.verb == Verb::kAtomic) return;
  FillPattern(Verified(endpoint_->sent_part()), PayloadSeed(run_, size_bytes_, measured, role_));
  FillAgainst(Verified(endpoint_->received_part()),
              PayloadSeed(run_, size_bytes_, measured, Other(role_)));
}

Status PointRun::CheckPayload(bool measured) {
  if (!DataLandsHere()) return {};
  const uint64_t seed = PayloadSeed(run_, size_bytes_, measured, Other(role_));
  if (const auto wrong = FindMismatch(Verified(endpoint_->received_part()), seed); wrong) {
    return Fail(PayloadError(operation_, size_bytes_, "byte", *wrong));
  }
  if (const auto broken = FindBrokenGuard(endpoint_->guard_part()); broken) {
    return Fail(PayloadError(operation_, size_bytes_, "guard byte behind the buffer", *broken));
  }
  return {};
}

Status PointRun::ExchangeResults() {
  nlohmann::json frame = {{"type", "result"}, {"result", ToJson(*own_, ResultForm::kWire)}};
  if (Status status = SendFrame(link_, frame, deadline_); !status) return status;
  Expected<nlohmann::json> received = ReceiveFrame(link_, "result", deadline_);
  if (!received) return Fail(std::move(received.error()));
  Expected<Result> result = ResultFromJson((*received)["result"]);
  if (!result) return Fail(std::move(result.error()));
  // Results are told apart by these: a peer must not speak for this side or for another run.
  if (result->side == own_->side || result->run != run_) {
    Error error;
    error.error_class = ErrorClass::kRun;
    error.message = fmt::format("the peer sent a result of the {}, run {}, not its own of run {}",
                                Printable(result->side, 32), result->run, run_);
    error.cause = "two versions that do not understand each other";
    error.next_step = "run the same verbscope version on both hosts";
    return Fail(std::move(error));
  }
  peer_ = std::move(*result);
  return {};
}

Error PointRun::FailureOf(const LoopOutcome& outcome) {
  return ExplainFailure({.side = side_,
                         .plan = plan_,
                         .operation = operation_,
                         .endpoint = *endpoint_,
                         .remote = remote_,
                         .monitor = monitor_,
                         .link = link_,
                         .size_bytes = size_bytes_,
                         .messages_before = messages_before_,
                         .passed_bytes = passed_bytes_},
                        outcome);
}

Point PointRun::MakePoint() const {
  const WaitMode wait = side_.settings.wait;
  Point point;
  point.op = operation_.op;
  point.size_bytes = size_bytes_;
  point.qps = plan_.qps;
  point.wait = wait.kind == WaitKind::kHybrid ? "hybrid" : ToText(wait);
  if (wait.kind == WaitKind::kHybrid) point.spin_ns = wait.spin_ns;
  point.tx_depth = endpoint_->depth();
  if (plan_.rate_per_s > 0) point.rate_per_s = plan_.rate_per_s;
  if (!plan_.busy_shares_percent.empty()) {
    point.busy_share_percent = plan_.busy_shares_percent.front();
  }
  if (!plan_.moderations.empty()) point.moderation = ToText(plan_.moderations.front());
  if (plan_.imm) point.imm = true;
  if (plan_.bidirectional) point.bidirectional = true;
  if (plan_.post_list != 1) point.post_list = plan_.post_list;
  if (operation_.verb == Verb::kAtomic) point.atomic_op = ToText(plan_.atomic_op);
  return point;
}

double PointRun::SecondsOf(const LoopOutcome& outcome) const {
  const uint64_t ticks = outcome.last_ticks - outcome.first_ticks;
  return static_cast<double>(side_.clock.scale(1.0).Nanoseconds(ticks)) * 1e-9;
}

CpuMetrics PointRun::CloseAccount(const CpuAccount& account, const LoopOutcome& outcome) const {
  const uint64_t messages = part_.sends ? outcome.samples : outcome.received;
  CpuMetrics cpu = account.Close(outcome, messages);
  if (side_.settings.wait.uses_events()) {
    cpu.vector_core = side_.device->CoreOfVector(side_.settings.comp_vector);
  }
  return cpu;
}

void PointRun::FillResult(MeasuredPart part) {
  measured_.Add(std::move(part));
  Result result;
  result.point = MakePoint();
  result.side = role_ == LoopRole::kRequester ? "requester" : "responder";
  result.run = run_;
  result.complete = false;  // until the phase has ended as planned
  result.metrics = measured_.ToMetrics(plan_.rate_per_s);
  result.metrics.warmup = warmup_;
  result.metrics.warmup_bandwidth = warmup_bandwidth_;
  result.intervals = measured_.intervals();
  own_ = std::move(result);
}

// The requester decides, both sides measure on together.
Status PointRun::Extend(const More& more) {
  // Each is estimated from the samples so far: a few do, and a peer that asks for more is odd.
  constexpr int kMostExtensions = 100;
  for (int extension = 0;; ++extension) {
    const Expected<int64_t> more_ns = AgreeOnMore(more, /*may=*/extension < kMostExtensions);
    if (!more_ns) return Fail(more_ns.error());
    if (*more_ns == 0) return {};
    LoopLength length;
    length.ticks = side_.clock.scale().Ticks(static_cast<uint64_t>(*more_ns));
    if (Status status = RunPhase(length, /*measured=*/true); !status) return status;
    if (Status status = ExchangeResults(); !status) return status;
  }
}

Expected<int64_t> PointRun::AgreeOnMore(const More& more, bool may) {
  if (role_ == LoopRole::kRequester) {
    const Result both[] = {*own_, *peer_};
    const auto measured_ns = static_cast<int64_t>(measured_.seconds() * 1e9);
    const int64_t more_ns = may && more ? more(both, measured_ns) : 0;
    const nlohmann::json frame = {{"type", "extend"}, {"run_ns", more_ns}};
    if (Status status = SendFrame(link_, frame, deadline_); !status) {
      return Fail(std::move(status.error()));
    }
    return more_ns;
  }
  Expected<nlohmann::json> frame = ReceiveFrame(link_, "extend", deadline_);
  if (!frame) return Fail(std::move(frame.error()));
  const auto left_ns =
      plan_.extend_to_ns - static_cast<int64_t>(std::min(measured_.seconds(), 1e9) * 1e9);
  // This side's clock may have seen a little more of the run than the requester's.
  const int64_t most_ns = may ? std::max<int64_t>(left_ns, 0) + plan_.extend_to_ns / 10 : 0;
  const Expected<uint64_t> run_ns = Unsigned(*frame, "run_ns", 0, static_cast<uint64_t>(most_ns));
  if (!run_ns) return Fail(run_ns.error());
  return static_cast<int64_t>(*run_ns);
}

}  // namespace verbscope
