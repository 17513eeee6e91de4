#include "core/session/monitor.h"

#include <chrono>
#include <string_view>
#include <utility>

namespace verbscope {
namespace {

// A device that overruns raises one event per completion that it loses: taken at once, so that a
// step does not hear those of the step before. Bounded, since the heartbeat waits meanwhile.
constexpr int kEventsPerTick = 256;

}  // namespace

Monitor::Monitor(PeerLink& link, Device& device, const Interrupt& interrupt, Deadline deadline)
    : link_(link), device_(device), interrupt_(interrupt), deadline_(deadline) {
  link_.SetOnLoss([this] { Lost(); });
  link_.SetOnFrame("abort", [this](const nlohmann::json&) { Lost(); });
  link_.SetOnFrame("done", [this](const nlohmann::json&) { Done(); });
  link_.SetOnTick([this] { Tick(); });
}

Monitor::~Monitor() {
  link_.SetOnTick(nullptr);
  link_.SetOnFrame("done", nullptr);
  link_.SetOnFrame("abort", nullptr);
  link_.SetOnLoss(nullptr);
}

void Monitor::Lost() {
  const std::lock_guard lock(mutex_);
  lost_ = true;
  stop_.Stop(StopReason::kPeerLost);
}

void Monitor::Reset() {
  const std::lock_guard lock(mutex_);
  stop_.Reset();
  // The signal keeps its first reason only; a later and worse one must not be lost with it.
  if (lost_) stop_.Stop(StopReason::kPeerLost);
  if (fatal_event_) stop_.Stop(StopReason::kDevice);
}

void Monitor::Done() {
  const std::lock_guard lock(mutex_);
  if (hold_done_) {
    done_held_ = true;
  } else {
    stop_.Stop(StopReason::kDone);
  }
}

void Monitor::HoldDone(bool hold) {
  const std::lock_guard lock(mutex_);
  hold_done_ = hold;
  if (!hold && std::exchange(done_held_, false)) stop_.Stop(StopReason::kDone);
}

void Monitor::Watch(IntervalRecorder* recorder) {
  const std::lock_guard lock(mutex_);
  recorder_ = recorder;
}

std::optional<std::string> Monitor::device_event() const {
  const std::lock_guard lock(mutex_);
  return device_event_;
}

std::vector<std::string> Monitor::TakeEvents() {
  const std::lock_guard lock(mutex_);
  return std::exchange(events_, {});
}

std::optional<Error> Monitor::events_error() const {
  const std::lock_guard lock(mutex_);
  return events_error_;
}

bool Monitor::Tolerated(const AsyncEvent& event) const {
  const auto is = [&event](const std::atomic<bool>& tolerate, std::string_view prefix) {
    return tolerate.load(std::memory_order_relaxed) && event.text.starts_with(prefix);
  };
  return is(tolerate_qp_events_, "QP_") || is(tolerate_cq_events_, "CQ_");
}

void Monitor::Note(AsyncEvent event) {
  const bool fatal = event.fatal && !Tolerated(event);
  if (events_.size() < kMostEvents) events_.push_back(event.text);
  // The first fatal one explains what follows; the kernel adds harmless ones behind it.
  if (!fatal_event_) device_event_ = std::move(event.text);
  fatal_event_ = fatal_event_ || fatal;
  if (fatal) stop_.Stop(StopReason::kDevice);
}

void Monitor::Tick() {
  if (interrupt_.raised()) stop_.Stop(StopReason::kInterrupted);
  if (deadline_.Passed()) stop_.Stop(StopReason::kDeadline);
  for (int i = 0; i < kEventsPerTick; ++i) {
    Expected<std::optional<AsyncEvent>> event =
        device_.NextAsyncEvent(Deadline::After(std::chrono::nanoseconds(0)));
    const std::lock_guard lock(mutex_);
    if (!event && !events_error_) events_error_ = std::move(event.error());
    if (!event || !event->has_value()) break;
    Note(**std::move(event));
  }
  {
    const std::lock_guard lock(mutex_);
    if (recorder_ != nullptr) recorder_->Fold();
  }
  stop_.Tick();
}

}  // namespace verbscope
