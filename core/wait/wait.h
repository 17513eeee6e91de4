// Three ways to wait for the next completion of a CQ. A measuring loop is written once and
// instantiated for each, so that event mode and busy polling are compared in the same loop.
//
// All have `int Next(ibv_wc* wcs, int most)`, which waits for one completion and takes up to
// `most`:
//   >0  so many completions (their status may be an error)
//   0   stop was asked for and the CQ is empty
//   -1  the device failed to poll, arm or deliver an event; error() says how the last two failed
// and `int NextUntil<Clock>(ibv_wc& wc, uint64_t until, const TickScale& scale)` for loops with a
// schedule: as Next for one completion, or kTimeUp once the clock has reached `until`, in ticks.
// Busy pollers poll until then; sleepers sleep until kSpinBeforeNs before it and then poll, so that
// a wake-up of the scheduler makes nothing late, and the CPU figures still mean something.
// They are called by the one thread that owns the CQ, after StopSignal::Attach.
//
// Event mode follows one order, in EventCore and nowhere else:
//     arm, drain, blocking read, acknowledge, re-arm, drain
// Arming is one-shot and (on some devices) reports nothing for completions that are already there;
// whoever drains after arming loses no wake-up, and every event is acknowledged on every path, so
// that the CQ can be destroyed (ibv_get_cq_event(3)).
//
// A lost wake-up is a finding about the device: a completion is in the CQ, the armed condition is
// met, and the channel stays unreadable for a further 10 ms, and for as long as the device was
// asked to hold events back. The control thread wakes a sleeper every 100 ms to look
// (StopSignal::Tick), so a lost wake-up costs one long sample, is counted, and never hangs the run.
#ifndef VERBSCOPE_CORE_WAIT_WAIT_H_
#define VERBSCOPE_CORE_WAIT_WAIT_H_

#include <infiniband/verbs.h>
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/base/error.h"
#include "core/clock/tick_scale.h"
#include "core/wait/stop.h"
#include "transports/device.h"

namespace verbscope {

// One breath for the other hyper-thread of a core.
inline void CpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

struct WaitCounters {
  uint64_t events = 0;         // events read from the channel
  uint64_t empty_wakeups = 0;  // events after which the CQ was already empty
  uint64_t lost_wakeups = 0;
};

inline constexpr int kTimeUp = -2;
inline constexpr int64_t kSpinBeforeNs = 50'000;

// With fewer CPUs than pollers a poller offers its CPU after so many empty polls in a row (tens of
// microseconds), so that two of them do not spend the scheduler's whole time slice on each message.
inline constexpr uint32_t kEmptyPollsPerYield = 2048;

// What a poller does after its `empty`-th empty poll in a row, from 1.
template <bool kPause, bool kYield>
void RestAfterPoll([[maybe_unused]] uint32_t empty) {
  if constexpr (kYield) {
    if (empty % kEmptyPollsPerYield == 0) ::sched_yield();
  }
  if constexpr (kPause) CpuPause();
}

// Polls without a break. kPause puts a pause instruction between two empty polls; kYield is for
// hosts where this poller shares a CPU with the one it waits for, and is chosen before the loop.
template <bool kPause, bool kYield>
class BasicBusyPoll {
 public:
  BasicBusyPoll(ibv_cq* cq, const StopSignal& stop) : cq_(cq), stop_(stop) {}

  int Next(ibv_wc* wcs, int most) {
    for (uint32_t empty = 1;; ++empty) {
      const int polled = ibv_poll_cq(cq_, most, wcs);
      if (polled != 0) [[likely]] {
        return polled;
      }
      if (stop_.stopped()) return 0;
      RestAfterPoll<kPause, kYield>(empty);
    }
  }

  template <class Clock>
  int NextUntil(ibv_wc& wc, uint64_t until, const TickScale& /*scale*/) {
    for (uint32_t empty = 1;; ++empty) {
      const int polled = ibv_poll_cq(cq_, 1, &wc);
      if (polled != 0) return polled;
      if (stop_.stopped()) return 0;
      if (Clock::Now() >= until) return kTimeUp;
      RestAfterPoll<kPause, kYield>(empty);
    }
  }

  WaitCounters counters() const { return {}; }

 private:
  ibv_cq* cq_;
  const StopSignal& stop_;
};
using BusyPoll = BasicBusyPoll<false, false>;
using BusyPollPause = BasicBusyPoll<true, false>;
using SharedBusyPoll = BasicBusyPoll<false, true>;
using SharedBusyPollPause = BasicBusyPoll<true, true>;

// The arm-sleep-acknowledge part shared by event and hybrid waiting.
class EventCore {
 public:
  EventCore(Device& device, ibv_cq* cq, bool solicited_only, StopSignal& stop)
      : device_(device), cq_(cq), solicited_only_(solicited_only), stop_(stop) {}

  // Arms unless already armed and not yet woken. False: error() is set.
  bool Arm();
  bool armed() const { return armed_; }

  // The CQ is armed and was found empty. Sleeps until an event came and acknowledges it, or until
  // stop was asked for. After a lost wake-up `wc` holds the completion whose event never came.
  enum class Wake { kEvent, kCompletion, kStopped, kFailed, kTimeout };
  Wake Sleep(ibv_wc& wc);
  // The same for at most `ns`, then kTimeout.
  Wake SleepFor(ibv_wc& wc, int64_t ns);
  bool stopped() const { return stop_.stopped(); }

  void CountEmptyWakeup() { ++counters_.empty_wakeups; }
  const WaitCounters& counters() const { return counters_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  enum class Read { kEvent, kInterrupted, kFailed };
  Read ReadEvent();
  bool ChannelReadable(int timeout_ms) const;
  // A completion was found that no event has told of yet.
  void JudgeLate();

  Device& device_;
  ibv_cq* cq_;
  bool solicited_only_;
  StopSignal& stop_;
  bool armed_ = false;
  WaitCounters counters_;
  std::optional<Error> error_;
};

// Sleeps in a blocking read of the completion channel, as applications do. kRearmsAtOnce: after an
// event it arms before it takes what has come, so that it is armed whenever it is not sleeping;
// else only just before it sleeps.
template <bool kRearmsAtOnce>
class BasicEventWait {
 public:
  BasicEventWait(Device& device, ibv_cq* cq, bool solicited_only, StopSignal& stop)
      : core_(device, cq, solicited_only, stop), cq_(cq) {}

  int Next(ibv_wc* wcs, int most) {
    bool woken = false;
    for (;;) {
      const int polled = ibv_poll_cq(cq_, most, wcs);
      if (polled != 0) return polled;
      if (woken) core_.CountEmptyWakeup();
      woken = false;
      if (!core_.armed()) {
        if (!core_.Arm()) return -1;
        continue;  // drain after arming
      }
      switch (core_.Sleep(*wcs)) {
        case EventCore::Wake::kEvent:
          if constexpr (kRearmsAtOnce) {
            if (!core_.Arm()) return -1;
          }
          woken = true;
          break;
        case EventCore::Wake::kCompletion:
          return 1;
        case EventCore::Wake::kStopped:
          return 0;
        case EventCore::Wake::kTimeout:
        case EventCore::Wake::kFailed:
          return -1;
      }
    }
  }

  template <class Clock>
  int NextUntil(ibv_wc& wc, uint64_t until, const TickScale& scale) {
    bool woken = false;
    for (;;) {
      const int polled = ibv_poll_cq(cq_, 1, &wc);
      if (polled != 0) return polled;
      if (woken) core_.CountEmptyWakeup();
      woken = false;
      if (core_.stopped()) return 0;
      const int64_t left_ns = scale.Nanoseconds(until - Clock::Now());
      if (left_ns <= 0) return kTimeUp;
      if (left_ns <= kSpinBeforeNs) continue;
      if (!core_.armed()) {
        if (!core_.Arm()) return -1;
        continue;  // drain after arming
      }
      switch (core_.SleepFor(wc, left_ns - kSpinBeforeNs)) {
        case EventCore::Wake::kEvent:
          woken = true;
          break;
        case EventCore::Wake::kTimeout:
          break;
        case EventCore::Wake::kCompletion:
          return 1;
        case EventCore::Wake::kStopped:
          return 0;
        case EventCore::Wake::kFailed:
          return -1;
      }
    }
  }

  WaitCounters counters() const { return core_.counters(); }
  std::optional<Error> error() const { return core_.error(); }

 private:
  EventCore core_;
  ibv_cq* cq_;
};

using EventWait = BasicEventWait</*kRearmsAtOnce=*/true>;

// Spins for a budget, then arms and sleeps. Armed only when it goes to sleep, so that a short wait
// makes no event at all. `Clock` is CpuCounter or PosixClock; the budget is in its ticks.
template <class Clock>
class HybridWait {
 public:
  HybridWait(Device& device, ibv_cq* cq, uint64_t spin_ticks, StopSignal& stop)
      : event_(device, cq, /*solicited_only=*/false, stop),
        cq_(cq),
        spin_ticks_(spin_ticks),
        stop_(stop) {}

  int Next(ibv_wc* wcs, int most) {
    const int polled = Spin(wcs, most, UINT64_MAX);
    if (polled != 0 || stop_.stopped()) return polled;
    return event_.Next(wcs, most);
  }

  template <class>
  int NextUntil(ibv_wc& wc, uint64_t until, const TickScale& scale) {
    const int polled = Spin(&wc, 1, until);
    if (polled != 0 || stop_.stopped()) return polled;
    if (Clock::Now() >= until) return kTimeUp;
    return event_.template NextUntil<Clock>(wc, until, scale);
  }

  WaitCounters counters() const { return event_.counters(); }
  std::optional<Error> error() const { return event_.error(); }

 private:
  // 0: the budget is used up, or `until` has come, and the CQ is empty.
  int Spin(ibv_wc* wcs, int most, uint64_t until) {
    const uint64_t start = Clock::Now();
    const uint64_t end = std::min(until, start + spin_ticks_);
    do {
      const int polled = ibv_poll_cq(cq_, most, wcs);
      if (polled != 0) return polled;
      if (stop_.stopped()) return 0;
    } while (Clock::Now() < end);
    return 0;
  }

  BasicEventWait</*kRearmsAtOnce=*/false> event_;
  ibv_cq* cq_;
  uint64_t spin_ticks_;
  const StopSignal& stop_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_WAIT_WAIT_H_
