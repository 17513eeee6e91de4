#include "transports/soft/device/helper.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "transports/soft/device/event_fd.h"

namespace verbscope::soft {
namespace {

constexpr uint64_t kFirstLookNs = 1'000'000;
constexpr uint64_t kLastLookNs = 10'000'000;
// Awake for so long after the last packet, while others may run.
constexpr uint64_t kLingerNs = 20'000;
// Longest time without looking at the link's sockets.
constexpr uint64_t kServeNs = 1'000'000;
// A round took so long because others wanted the CPU: giving it away costs their whole time slice,
// and waking up from a sleep is sooner. Believed for a while.
constexpr uint64_t kLongNs = 500'000;
constexpr uint64_t kCrowdedNs = 5'000'000;
// Longest sleep while QPs exist: a timer may have been started by a post that nobody followed up.
constexpr uint64_t kIdleNs = 20'000'000;
// How soon to look again whether a full ring has room.
constexpr uint64_t kRoomNs = 500'000;
constexpr uint64_t kForeverNs = UINT64_MAX;

// Signals belong to the program's threads: a directed one must not end up here.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

Status Helper::Start() {
  const AllSignalsBlocked blocked;
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error& error) {
    return Fail(CallError(ErrorClass::kSetup, "pthread_create", "helper thread of the soft device",
                          error.code().value()));
  }
  return {};
}

void Helper::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_relaxed);
  core_.CallHelper();
  thread_.join();
}

void Helper::Run() {
  while (!stopping()) {
    core_.link().Serve();
    const uint64_t activity = core_.activity();
    const bool driven = std::exchange(seen_activity_, activity) != activity;
    if (driven && !core_.helper_watches()) {
      LookIn();
    } else {
      TakeOver();
    }
  }
}

void Helper::LookIn() {
  look_in_ns_ = std::clamp(look_in_ns_ * 2, kFirstLookNs, kLastLookNs);
  Sleep(look_in_ns_);
  // ACKs that nobody asked for are owed in time, however seldom the program polls.
  if (core_.link().udp()) core_.LookAtClock();
}

void Helper::TakeOver() {
  look_in_ns_ = 0;
  const uint64_t begun = NowNs();
  uint64_t last_work = 0;
  uint64_t sleep_ns = kForeverNs;
  uint64_t now = begun;
  for (;;) {
    bool more = false;
    {
      const SpinLockHolder hold(core_.lock());
      const size_t delivered = core_.Drive(now);
      if (delivered > 0) last_work = now;
      more = delivered > 0 || core_.link().Backlog();
      const bool quiet = last_work == 0 || now - last_work >= kLingerNs || now < crowded_until_ns_;
      if (quiet && !more && core_.link().PrepareSleep()) {
        sleep_ns = SleepTime(now);
        break;
      }
    }
    // However busy: peers that come, go or offer a channel are waiting too.
    if (stopping() || core_.activity() != seen_activity_ || now - begun >= kServeNs) return;
    const bool gives_way = !more || core_.lock().wanted();
    if (gives_way) ::sched_yield();
    const uint64_t before = std::exchange(now, NowNs());
    if (gives_way && now - before >= kLongNs) crowded_until_ns_ = now + kCrowdedNs;
  }
  Sleep(sleep_ns);
  const SpinLockHolder hold(core_.lock());
  core_.link().Awake();
  ++core_.helper_wakeups;
}

uint64_t Helper::SleepTime(uint64_t now_ns) const {
  uint64_t sleep_ns = core_.engine().live_qps() > 0 ? kIdleNs : kForeverNs;
  // Something waits for room in a ring: nobody rings when its reader makes some.
  if (core_.attention()) sleep_ns = std::min(sleep_ns, kRoomNs);
  if (const std::optional<uint64_t> timer = core_.NextTimer()) {
    sleep_ns = std::min(sleep_ns, *timer > now_ns ? *timer - now_ns : 0);
  }
  return sleep_ns;
}

void Helper::Sleep(uint64_t for_ns) {
  std::array<pollfd, 2> waiting = {
      pollfd{.fd = core_.link().wait_fd(), .events = POLLIN, .revents = 0},
      pollfd{.fd = core_.call_fd().get(), .events = POLLIN, .revents = 0}};
  const timespec timeout = {.tv_sec = static_cast<time_t>(for_ns / 1'000'000'000),
                            .tv_nsec = static_cast<long>(for_ns % 1'000'000'000)};
  ::ppoll(waiting.data(), waiting.size(), for_ns == kForeverNs ? nullptr : &timeout, nullptr);
  if (waiting[1].revents != 0) TakeOne(core_.call_fd());
}

}  // namespace verbscope::soft
