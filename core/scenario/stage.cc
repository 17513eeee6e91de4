#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "core/causes/rc_timers.h"
#include "core/scenario/scenario.h"
#include "core/session/latency_metrics.h"
#include "core/session/messages.h"
#include "core/session/steps.h"
#include "core/session/stop_error.h"
#include "core/wait/wait.h"

namespace verbscope {
namespace {

constexpr const char* kFrame = "scenario";

}  // namespace

Status Stage::Meet(std::string_view barrier) {
  return Barrier(parts_.link, fmt::format("{}: {}", name_, barrier), parts_.deadline);
}

Status Stage::Tell(const nlohmann::json& content) {
  return SendFrame(parts_.link, {{"type", kFrame}, {"name", name_}, {"content", content}},
                   parts_.deadline);
}

Expected<nlohmann::json> Stage::Hear() {
  Expected<nlohmann::json> frame = ReceiveFrame(parts_.link, kFrame, parts_.deadline);
  if (!frame) return frame;
  const auto name = frame->find("name");
  const auto content = frame->find("content");
  if (name != frame->end() && *name == name_ && content != frame->end()) {
    return std::move(*content);
  }
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = fmt::format("this side is in the step \"{}\", the peer in another", name_);
  error.cause = "two versions that do not understand each other";
  error.next_step = "run the same verbscope version on both hosts";
  return Fail(std::move(error));
}

Expected<nlohmann::json> Stage::Swap(const nlohmann::json& content) {
  if (Status status = Tell(content); !status) return Fail(std::move(status.error()));
  return Hear();
}

Expected<EndpointInfo> Stage::SwapEndpoints(const EndpointInfo& own) {
  if (Status status = SendFrame(parts_.link, ToJson(own), parts_.deadline); !status) {
    return Fail(std::move(status.error()));
  }
  Expected<nlohmann::json> frame = ReceiveFrame(parts_.link, "endpoint", parts_.deadline);
  if (!frame) return Fail(std::move(frame.error()));
  return EndpointInfoFromJson(*frame);
}

Expected<FreshQp*> Stage::MakeQp(const FreshQpOptions& options) {
  Expected<std::unique_ptr<FreshQp>> qp = FreshQp::Create(*this, options);
  if (!qp) return Fail(std::move(qp.error()));
  qps_.push_back(std::move(*qp));
  return qps_.back().get();
}

Expected<QpSet*> Stage::MakeQpSet(const QpSetOptions& options) {
  Expected<std::unique_ptr<QpSet>> set = QpSet::Create(*this, options);
  if (!set) return Fail(std::move(set.error()));
  qp_sets_.push_back(std::move(*set));
  return qp_sets_.back().get();
}

Expected<std::optional<ibv_wc>> Stage::Await(ibv_cq* cq, std::chrono::nanoseconds limit) {
  const StopSignal& stop = parts_.monitor.stop();
  ibv_wc completion;
  // The clock is read only now and then: most completions are there long before.
  std::optional<Deadline> deadline;
  for (uint32_t empty = 1;; ++empty) {
    const int polled = ibv_poll_cq(cq, 1, &completion);
    if (polled > 0) return completion;
    if (polled < 0) {
      Error error = CallError(ErrorClass::kRun, "ibv_poll_cq", device().info().name, EIO);
      error.cause = "the device or its driver reset, or the CQ overran";
      error.next_step = "look at the kernel log (dmesg) of this host";
      return Fail(std::move(error));
    }
    if (stop.stopped()) return Fail(std::move(Stopped().error()));
    if (limit.count() == 0) return std::nullopt;
    if (empty % kEmptyPollsPerYield != 0) continue;
    if (!deadline) deadline = Deadline::After(limit);
    if (deadline->Passed()) return std::nullopt;
    ::sched_yield();
  }
}

Status Stage::Stopped() const {
  const StopSignal& signal = stop();
  if (!signal.stopped()) return {};
  return Fail(StopError(signal.reason(), parts_.link, parts_.monitor, plan()));
}

Status Stage::Rest(std::chrono::nanoseconds time) {
  constexpr std::chrono::nanoseconds kNap = std::chrono::milliseconds(2);
  const Deadline deadline = Deadline::After(time);
  for (;;) {
    if (Status status = Stopped(); !status || deadline.Passed()) return status;
    std::this_thread::sleep_for(std::min(kNap, time));
  }
}

void Stage::ExpectCqEvents() {
  parts_.monitor.TolerateCqEvents();
  (void)parts_.monitor.TakeEvents();
}

Expected<std::optional<std::string>> Stage::AwaitCqEvent(std::chrono::nanoseconds limit) {
  const Deadline deadline = Deadline::After(limit);
  for (;;) {
    for (std::string& event : parts_.monitor.TakeEvents()) {
      if (event.starts_with("CQ_")) return std::move(event);
    }
    // Without events a missing one says nothing of the device.
    if (std::optional<Error> error = parts_.monitor.events_error()) return Fail(std::move(*error));
    if (deadline.Passed()) return std::nullopt;
    if (Status status = Rest(std::chrono::milliseconds(5)); !status) {
      return Fail(std::move(status.error()));
    }
  }
}

uint64_t Stage::Now() const {
  return clock().Dispatch([](auto counter) { return counter.Now(); });
}

std::chrono::nanoseconds Stage::CompletionLimit() const {
  constexpr std::chrono::nanoseconds kLeast = std::chrono::seconds(2);
  constexpr std::chrono::nanoseconds kMost = std::chrono::seconds(15);  // below a step's time
  const std::optional<int64_t> give_up = AckGiveUpNs(plan().timeout_code, plan().retry_count);
  if (!give_up) return kMost;
  return std::clamp(std::chrono::nanoseconds(*give_up * kAckTimeoutSlack), kLeast, kMost);
}

void Stage::Measured(Point point, const Histogram& histogram, std::string_view definition,
                     std::string_view ended_by) {
  Operation operation;
  operation.definition = definition;
  operation.ended_by = ended_by;
  Result result;
  result.point = std::move(point);
  result.point.qps = 1;
  result.point.wait = ToText(WaitMode{});  // Await polls, whatever the side's --wait
  result.point.tx_depth = 1;
  result.side = requester() ? "requester" : "responder";
  result.metrics.latency = MakeLatencyMetrics(histogram, operation);
  results_.push_back(std::move(result));
}

Status Stage::CloseQps() {
  Status first;
  // In reverse order of creation: a later one may use the CQs of an earlier one.
  for (; !qps_.empty(); qps_.pop_back()) {
    if (Status status = qps_.back()->Close(); !status && first) first = std::move(status);
  }
  for (const std::unique_ptr<QpSet>& set : qp_sets_) {
    if (Status status = set->Close(); !status && first) first = std::move(status);
  }
  qp_sets_.clear();
  return first;
}

}  // namespace verbscope
