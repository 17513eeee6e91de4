#include "core/session/phase.h"

#include <sys/prctl.h>

#include <bit>
#include <chrono>
#include <utility>

#include "core/base/deadline.h"
#include "core/loops/schedule.h"

namespace verbscope {
namespace {

constexpr std::chrono::seconds kDrainTime(2);
constexpr uint64_t kScheduleSeed = 1;  // the same stream of messages in every run

// What share of the time between two clock readings a sample is.
double SampleShare(const Operation& operation) {
  return operation.definition == "half_round_trip" ? 0.5 : 1.0;
}

uint64_t IntervalTicks(const Plan& plan, const Clock& clock) {
  return clock.scale().Ticks(static_cast<uint64_t>(plan.interval_ns));
}

// The kernel may wake a sleeping thread some 50 us later than asked, to wake several at once: as
// long as an open loop polls before a message is due. Of this thread, while it lives.
class FineTimers {
 public:
  FineTimers() : slack_ns_(::prctl(PR_GET_TIMERSLACK)) { ::prctl(PR_SET_TIMERSLACK, 1UL); }
  ~FineTimers() {
    if (slack_ns_ > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_ns_));
  }
  FineTimers(const FineTimers&) = delete;
  FineTimers& operator=(const FineTimers&) = delete;

 private:
  const int slack_ns_;
};

}  // namespace

Part PartOf(LoopRole role, const Operation& operation, const Plan& plan) {
  const bool requester = role == LoopRole::kRequester;
  const bool answers =
      operation.shape == LoopShape::kPingPong || operation.shape == LoopShape::kPayloadPing;
  Part part;
  part.sends = requester || plan.bidirectional;
  part.receives = answers || (operation.takes_receives && (!requester || plan.bidirectional));
  // Who answers at another's pace has no response times of its own.
  part.measures_latency =
      operation.measures_latency() && (requester || (answers && plan.rate_per_s == 0));
  return part;
}

bool ResponderSleeps(const Plan& plan, const Device& device) {
  if (FindOperation(plan.command) == nullptr || device.ServesInPolls()) return false;
  const Part part = PartOf(LoopRole::kResponder, OperationOf(plan), plan);
  return !part.sends && !part.receives;
}

Phase::Phase(LoopRole role, const Operation& operation, const Plan& plan, const SideState& side,
             Endpoint& endpoint, Monitor& monitor)
    : role_(role),
      operation_(operation),
      plan_(plan),
      side_(side),
      endpoint_(endpoint),
      monitor_(monitor),
      part_(PartOf(role, operation, plan)),
      sent_(side.clock.scale(1.0), IntervalTicks(plan, side.clock), endpoint.sent_part().size()),
      received_(side.clock.scale(1.0), IntervalTicks(plan, side.clock),
                endpoint.sent_part().size()) {
  if (operation.shape == LoopShape::kStream) return;
  latency_ =
      std::make_unique<IntervalRecorder>(side.clock.scale(SampleShare(operation)),
                                         side.clock.scale(1.0), IntervalTicks(plan, side.clock));
}

LoopOutcome Phase::Run(LoopLength length) {
  if (!part_.sends) length = {};
  monitor_.Watch(latency_.get());
  LoopOutcome outcome;
  if (operation_.shape == LoopShape::kStream) {
    outcome = part_.sends || part_.receives ? RunStreams(part_.sends, length) : RunIdle();
  } else if (plan_.rate_per_s > 0 && role_ == LoopRole::kRequester) {
    outcome = RunOpen(length);
  } else {
    outcome = RunLatency(length);
  }
  monitor_.Watch(nullptr);
  return outcome;
}

LoopOutcome Phase::RunLatency(LoopLength length) {
  const WaitMode wait = side_.settings.wait;
  switch (operation_.shape) {
    case LoopShape::kPingPong: {
      PingPongSetup setup = endpoint_.PingPong(monitor_.stop(), *latency_);
      setup.shares_cpu = side_.shares_cpu;
      return RunPingPong(role_, setup, length, wait, side_.clock);
    }
    case LoopShape::kPayloadPing: {
      PayloadPingSetup setup = endpoint_.PayloadPing(monitor_.stop(), *latency_);
      setup.shares_cpu = side_.shares_cpu;
      return RunPayloadPing(role_, setup, length, wait, side_.clock);
    }
    case LoopShape::kRoundTrip:
    case LoopShape::kStream:
      break;
  }
  if (role_ == LoopRole::kResponder) return RunIdle();
  RoundTripSetup setup = endpoint_.RoundTrips(monitor_.stop(), *latency_);
  setup.shares_cpu = side_.shares_cpu;
  return RunRoundTrips(setup, length, wait, side_.clock);
}

LoopOutcome Phase::RunOpen(LoopLength length) {
  const FineTimers fine_timers;
  std::vector<uint64_t> due(std::bit_ceil(uint64_t{endpoint_.depth()}));
  const std::vector<uint64_t> gaps =
      MakeGaps(plan_.rate_per_s, plan_.arrival, side_.clock.scale(1.0), kScheduleSeed);
  OpenLoopSetup setup = endpoint_.OpenLoop(monitor_.stop(), *latency_);
  setup.due = due;
  setup.gaps = gaps;
  setup.scale = side_.clock.scale(1.0);
  setup.shares_cpu = side_.shares_cpu;
  return RunOpenLoop(setup, length, side_.settings.wait, side_.clock);
}

LoopOutcome Phase::RunStreams(bool sends, LoopLength length) {
  StreamSetup setup = endpoint_.Stream(monitor_.stop());
  setup.sends = sends;
  setup.receives = part_.receives;
  setup.sent = &sent_;
  setup.received = &received_;
  setup.shares_cpu = side_.shares_cpu;
  return RunStream(setup, length, side_.settings.wait, side_.clock);
}

// The program takes no part. Where its polls serve the peer it waits for what must not come, as it
// was asked to wait; elsewhere it leaves the CPU to others, such as a device that is software too.
LoopOutcome Phase::RunIdle() {
  if (!side_.device->ServesInPolls()) {
    monitor_.stop().Await();
    LoopOutcome outcome;
    outcome.end = LoopEnd::kStopped;
    return outcome;
  }
  RoundTripSetup setup;
  setup.device = side_.device.get();
  setup.recv_cq = endpoint_.recv_cq();
  setup.shares_cpu = side_.shares_cpu;
  setup.stop = &monitor_.stop();
  return RunServed(setup, side_.settings.wait, side_.clock);
}

LoopOutcome Phase::RunTail() {
  return part_.receives ? RunStreams(/*sends=*/false, {}) : RunIdle();
}

LoopOutcome Phase::Drain(uint64_t messages) {
  const Deadline deadline = Deadline::After(kDrainTime);
  LoopOutcome total;
  do {
    // Already stopped: it takes what is there and returns.
    LoopOutcome part = RunStreams(/*sends=*/false, {.messages = messages - total.received});
    part.received += total.received;
    total = std::move(part);
  } while (total.end == LoopEnd::kStopped && !deadline.Passed());
  return total;
}

void Phase::Finish(const LoopOutcome& outcome) {
  if (latency_) latency_->Finish(outcome.last_ticks);
}

std::optional<BandwidthMetrics> Phase::Bandwidth() const {
  if (latency_ || !(part_.sends || part_.receives)) return std::nullopt;
  return OwnRate().Total();
}

std::vector<IntervalRow> Phase::TakeIntervals() {
  if (latency_) {
    return part_.measures_latency ? latency_->TakeRows() : std::vector<IntervalRow>();
  }
  return part_.sends || part_.receives ? OwnRate().Rows() : std::vector<IntervalRow>();
}

}  // namespace verbscope
