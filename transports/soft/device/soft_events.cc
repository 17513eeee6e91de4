// Waiting for completion events and asynchronous events.
//
// A sleeper on a completion channel drives the device itself: it delivers what has arrived before
// it reports an event, and it wakes up for timers. So the sender of a message can wake it directly,
// by writing to the channel's descriptor, with no thread in between.
#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "transports/common/qp_text.h"
#include "transports/soft/device/call_error.h"
#include "transports/soft/device/soft_device.h"

namespace verbscope::soft {
namespace {

// Sleeps on one descriptor until it is readable, a signal comes (false) or the timer is due.
bool SleepOn(int fd, std::optional<uint64_t> timer_ns, uint64_t now_ns) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  timespec timeout = {};
  if (timer_ns) {
    const uint64_t left = *timer_ns > now_ns ? *timer_ns - now_ns : 0;
    timeout.tv_sec = static_cast<time_t>(left / 1'000'000'000);
    timeout.tv_nsec = static_cast<long>(left % 1'000'000'000);
  }
  return ::ppoll(&waiting, 1, timer_ns ? &timeout : nullptr, nullptr) >= 0 || errno != EINTR;
}

}  // namespace

Expected<ibv_cq*> SoftDevice::GetCqEvent(ibv_comp_channel* base) {
  if (Status status = Hooked("get_cq_event", ""); !status) return Fail(std::move(status.error()));
  SoftChannel& channel = Of(base);
  const bool blocking = (::fcntl(channel.fd, F_GETFL) & O_NONBLOCK) == 0;
  for (;;) {
    core_->CountActivity();
    const uint64_t now = NowNs();
    std::optional<uint64_t> timer;
    {
      const SpinLockHolder hold(core_->lock());
      if (SoftCq* cq = core_->TakeCqEvent(channel, now); cq != nullptr) {
        ++cq->events_taken;
        return Public(*cq);
      }
      timer = core_->NextTimer();
    }
    if (!blocking) {
      errno = EAGAIN;
      return nullptr;
    }
    if (!SleepOn(channel.fd, timer, now)) return nullptr;
  }
}

void SoftDevice::AckCqEvents(ibv_cq* base, unsigned count) {
  std::unique_lock lock(mutex_, std::defer_lock);
  if (Has(Defect::kUnackedDestroy)) {
    lock.lock();
    if (!cqs_.Has(Of(base))) return;  // it went without waiting for this
  }
  const SpinLockHolder hold(core_->lock());
  base->comp_events_completed += count;
}

Expected<std::optional<AsyncEvent>> SoftDevice::NextAsyncEvent(Deadline deadline) {
  if (Status status = Hooked("get_async_event", ""); !status) {
    return Fail(std::move(status.error()));
  }
  for (;;) {
    {
      const SpinLockHolder hold(core_->lock());
      if (const std::optional<ibv_async_event> event = core_->TakeAsyncEvent()) {
        return AsyncEvent{.text = DescribeAsyncEvent(*event, info_.name),
                          .fatal = IsFatal(event->event_type)};
      }
    }
    if (deadline.Passed()) return std::nullopt;
    pollfd waiting = {.fd = core_->async_fd(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, deadline.PollTimeoutMs()) < 0 && errno != EINTR) {
      return Fail(CallError(ErrorClass::kRun, "poll", "async events of " + info_.name, errno));
    }
  }
}

}  // namespace verbscope::soft
