#include "core/wait/wait.h"

#include <poll.h>

#include <cerrno>
#include <chrono>
#include <ctime>

namespace verbscope {
namespace {

// How much longer the channel may stay unreadable, with a completion in the CQ, before the wake-up
// counts as lost.
constexpr int kLostWakeupGraceMs = 10;

}  // namespace

bool EventCore::Arm() {
  if (armed_) return true;
  const int result = ibv_req_notify_cq(cq_, solicited_only_ ? 1 : 0);
  if (result != 0) {
    error_ = CallError(ErrorClass::kRun, "ibv_req_notify_cq",
                       solicited_only_ ? "solicited_only=1" : "solicited_only=0",
                       result > 0 ? result : errno);
    error_->next_step = "run with --wait busy to measure without completion events";
    return false;
  }
  armed_ = true;
  return true;
}

EventCore::Read EventCore::ReadEvent() {
  // Stop is looked at after the sleep was announced: if it is set later, Tick sees the announced
  // sleep and signals until EndSleep.
  stop_.BeginSleep();
  if (stop_.stopped()) {
    stop_.EndSleep();
    return Read::kInterrupted;
  }
  Expected<ibv_cq*> event = device_.GetCqEvent(cq_->channel);
  stop_.EndSleep();
  if (!event) {
    error_ = event.error();
    return Read::kFailed;
  }
  if (*event == nullptr) return Read::kInterrupted;
  armed_ = false;
  ++counters_.events;
  device_.AckCqEvents(*event, 1);
  return Read::kEvent;
}

bool EventCore::ChannelReadable(int timeout_ms) const {
  pollfd channel = {.fd = cq_->channel->fd, .events = POLLIN, .revents = 0};
  // The control thread's wake-up signal may come again meanwhile: that is no answer.
  const Deadline deadline = Deadline::After(std::chrono::milliseconds(timeout_ms));
  int ready = 0;
  do {
    ready = ::poll(&channel, 1, deadline.PollTimeoutMs());
  } while (ready < 0 && errno == EINTR && !deadline.Passed());
  return ready > 0;
}

EventCore::Wake EventCore::Sleep(ibv_wc& wc) {
  for (;;) {
    switch (ReadEvent()) {
      case Read::kEvent:
        return Wake::kEvent;
      case Read::kFailed:
        return Wake::kFailed;
      case Read::kInterrupted:
        break;
    }
    // Woken by the control thread: to stop, or to look whether a wake-up was lost.
    const int polled = ibv_poll_cq(cq_, 1, &wc);
    if (polled < 0) {
      error_ = CallError(ErrorClass::kRun, "ibv_poll_cq", "1 entry", errno);
      return Wake::kFailed;
    }
    if (polled > 0) {
      JudgeLate();
      return Wake::kCompletion;
    }
    if (stop_.stopped()) return Wake::kStopped;
  }
}

void EventCore::JudgeLate() {
  // With a readable channel the event is merely late: it is read at the next sleep.
  if (ChannelReadable(kLostWakeupGraceMs + stop_.late_events_ms())) return;
  ++counters_.lost_wakeups;
  armed_ = false;
}

EventCore::Wake EventCore::SleepFor(ibv_wc& wc, int64_t ns) {
  pollfd channel = {.fd = cq_->channel->fd, .events = POLLIN, .revents = 0};
  const timespec timeout = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  stop_.BeginSleep();
  const int ready = stop_.stopped() ? 0 : ::ppoll(&channel, 1, &timeout, nullptr);
  stop_.EndSleep();
  if (ready > 0) {
    const Read read = ReadEvent();
    if (read == Read::kEvent) return Wake::kEvent;
    if (read == Read::kFailed) return Wake::kFailed;
  }
  if (stop_.stopped()) return Wake::kStopped;
  const int polled = ibv_poll_cq(cq_, 1, &wc);
  if (polled < 0) {
    error_ = CallError(ErrorClass::kRun, "ibv_poll_cq", "1 entry", errno);
    return Wake::kFailed;
  }
  if (polled == 0) return Wake::kTimeout;
  JudgeLate();
  return Wake::kCompletion;
}

}  // namespace verbscope
