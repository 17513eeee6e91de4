// Events: arming a CQ, taking an event that is ready, acknowledging.
#include <fmt/core.h>
#include <poll.h>

#include <chrono>
#include <utility>

#include "core/base/deadline.h"
#include "core/cost/verb_rows.h"

namespace verbscope {
namespace {

// A channel with one event in it, made by a completion that is drained afterwards.
class ReadyEvent {
 public:
  explicit ReadyEvent(LoopbackPair& pair) : pair_(pair) {}

  Status Prepare(const CostLimits& limits) {
    Status status = pair_.Posted(ibv_req_notify_cq(pair_.send_cq(), 0), "ibv_req_notify_cq");
    if (!status) return status;
    ibv_send_wr* bad = nullptr;
    ibv_send_wr* const write = pair_.Writes(1, kSweepBytes, 0, /*signal_all=*/true);
    status = pair_.Posted(ibv_post_send(pair_.qp(), write, &bad), "ibv_post_send");
    return status ? Await(limits) : status;
  }

  Status Drain() { return pair_.Drain(1); }

 private:
  Status Await(const CostLimits& limits) const {
    const Deadline patience = Deadline::After(LoopbackPair::kPatience);
    pollfd waiting = {.fd = pair_.channel()->fd, .events = POLLIN, .revents = 0};
    while (::poll(&waiting, 1, 0) <= 0) {
      pair_.Settle(std::chrono::microseconds(1));
      if (Status status = limits.Check(); !status) return status;
      if (!patience.Passed()) continue;
      Error error;
      error.error_class = ErrorClass::kRun;
      error.message = fmt::format("an armed CQ raised no event for its completion within {} s",
                                  LoopbackPair::kPatience.count());
      error.cause = "the device lost it, or does not work on its requests";
      error.next_step = "verbscope send-lat --loopback --events shows whether events arrive at all";
      return Fail(std::move(error));
    }
    return {};
  }

  LoopbackPair& pair_;
};

Status NoEvent() {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = "ibv_get_cq_event returned no event although its channel was readable";
  return Fail(std::move(error));
}

Status MeasureTaking(CostMeter& meter, Device& device, LoopbackPair& pair) {
  ReadyEvent event(pair);
  Expected<ibv_cq*> cq = nullptr;
  return meter.Measure(
      CostRow{.point = CostPoint("get_cq_event")}, [&] { return event.Prepare(meter.limits()); },
      [&] { cq = device.GetCqEvent(pair.channel()); },
      [&]() -> Expected<bool> {
        if (!cq) return Fail(cq.error());
        if (*cq == nullptr) return Fail(NoEvent().error());
        device.AckCqEvents(*cq, 1);
        if (Status status = event.Drain(); !status) return Fail(std::move(status.error()));
        return true;
      });
}

Status MeasureAcknowledging(CostMeter& meter, Device& device, LoopbackPair& pair, uint32_t count) {
  CostRow row{.point = CostPoint("ack_cq_events"), .work = count};
  row.point.variant = count == 1 ? "1 event" : fmt::format("{} events", count);
  ReadyEvent event(pair);
  uint32_t owed = 0;  // events that are not acknowledged yet
  const auto take_one = [&]() -> Status {
    if (Status status = event.Prepare(meter.limits()); !status) return status;
    const Expected<ibv_cq*> cq = device.GetCqEvent(pair.channel());
    if (!cq) return Fail(cq.error());
    if (*cq == nullptr) return NoEvent();
    ++owed;
    return event.Drain();
  };
  const auto take = [&]() -> Status {
    while (owed < count) {
      if (Status status = take_one(); !status) {
        device.AckCqEvents(pair.send_cq(), owed);  // or the CQ could not be destroyed
        return status;
      }
    }
    return {};
  };
  return meter.Measure(
      row, take, [&] { device.AckCqEvents(pair.send_cq(), count); },
      [&owed]() -> Expected<bool> {
        owed = 0;
        return true;
      });
}

}  // namespace

Status MeasureNotify(CostMeter& meter, const CostStage& stage) {
  Expected<std::unique_ptr<LoopbackPair>> pair =
      LoopbackPair::Create(stage, meter.limits(), {.channel = true});
  if (!pair) return Fail(std::move(pair.error()));
  int result = 0;
  return meter.Measure(
      CostRow{.point = CostPoint("req_notify_cq")}, [] { return Status(); },
      [&] { result = ibv_req_notify_cq((*pair)->send_cq(), 0); },
      [&]() -> Expected<bool> {
        Status status = (*pair)->Posted(result, "ibv_req_notify_cq");
        if (!status) return Fail(std::move(status.error()));
        return true;
      });
}

Status MeasureGetEvent(CostMeter& meter, const CostStage& stage) {
  Expected<std::unique_ptr<LoopbackPair>> pair =
      LoopbackPair::Create(stage, meter.limits(), {.channel = true});
  if (!pair) return Fail(std::move(pair.error()));
  Status status = MeasureTaking(meter, stage.device, **pair);
  if (status) status = MeasureAcknowledging(meter, stage.device, **pair, 1);
  if (status) status = MeasureAcknowledging(meter, stage.device, **pair, kPollBatch);
  return status;
}

}  // namespace verbscope
