#include "core/session/monitor.h"

#include <chrono>
#include <utility>

namespace verbscope {

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

void Monitor::Tick() {
  if (interrupt_.raised()) stop_.Stop(StopReason::kInterrupted);
  if (deadline_.Passed()) stop_.Stop(StopReason::kDeadline);
  Expected<std::optional<AsyncEvent>> event =
      device_.NextAsyncEvent(Deadline::After(std::chrono::nanoseconds(0)));
  {
    const std::lock_guard lock(mutex_);
    if (event && event->has_value()) {
      const bool tolerated =
          tolerate_qp_events_.load(std::memory_order_relaxed) && (*event)->text.starts_with("QP_");
      const bool fatal = (*event)->fatal && !tolerated;
      // The first fatal one explains what follows; the kernel adds harmless ones behind it.
      if (!fatal_event_) device_event_ = std::move((*event)->text);
      fatal_event_ = fatal_event_ || fatal;
      if (fatal) stop_.Stop(StopReason::kDevice);
    }
    if (recorder_ != nullptr) recorder_->Fold();
  }
  stop_.Tick();
}

}  // namespace verbscope
