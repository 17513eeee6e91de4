// Three ways to wait for the next completion of a CQ. A measuring loop is written once and
// instantiated for each, so that event mode and busy polling are compared in the same loop.
//
// All have one function, `int Next(ibv_wc& wc)`:
//   1   wc is the next completion (its status may be an error)
//   0   stop was asked for and the CQ is empty
//   -1  the device failed to poll, arm or deliver an event; error() says how the last two failed
// It is called by the one thread that owns the CQ, after StopSignal::Attach.
//
// Event mode follows one order, in EventCore and nowhere else:
//     arm, drain, blocking read, acknowledge, re-arm, drain
// Arming is one-shot and (on some devices) reports nothing for completions that are already there;
// whoever drains after arming loses no wake-up, and every event is acknowledged on every path, so
// that the CQ can be destroyed (ibv_get_cq_event(3)).
//
// A lost wake-up is a finding about the device: a completion is in the CQ, the armed condition is
// met, and the channel stays unreadable for a further 10 ms. The control thread wakes a sleeper
// every 100 ms to look (StopSignal::Tick), so a lost wake-up costs one long sample, is counted, and
// never hangs the run.
#ifndef VERBSCOPE_CORE_WAIT_WAIT_H_
#define VERBSCOPE_CORE_WAIT_WAIT_H_

#include <infiniband/verbs.h>
#include <sched.h>

#include <cstdint>
#include <optional>

#include "core/base/error.h"
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

// With fewer CPUs than pollers a poller offers its CPU after so many empty polls in a row (tens of
// microseconds), so that two of them do not spend the scheduler's whole time slice on each message.
inline constexpr uint32_t kEmptyPollsPerYield = 2048;

// Polls without a break. kPause puts a pause instruction between two empty polls; kYield is for
// hosts where this poller shares a CPU with the one it waits for, and is chosen before the loop.
template <bool kPause, bool kYield>
class BasicBusyPoll {
 public:
  BasicBusyPoll(ibv_cq* cq, const StopSignal& stop) : cq_(cq), stop_(stop) {}

  int Next(ibv_wc& wc) {
    for ([[maybe_unused]] uint32_t empty = 1;; ++empty) {
      const int polled = ibv_poll_cq(cq_, 1, &wc);
      if (polled != 0) [[likely]] {
        return polled;
      }
      if (stop_.stopped()) return 0;
      if constexpr (kYield) {
        if (empty % kEmptyPollsPerYield == 0) ::sched_yield();
      }
      if constexpr (kPause) CpuPause();
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
  enum class Wake { kEvent, kCompletion, kStopped, kFailed };
  Wake Sleep(ibv_wc& wc);

  void CountEmptyWakeup() { ++counters_.empty_wakeups; }
  const WaitCounters& counters() const { return counters_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  enum class Read { kEvent, kInterrupted, kFailed };
  Read ReadEvent();
  bool ChannelReadable(int timeout_ms) const;

  Device& device_;
  ibv_cq* cq_;
  bool solicited_only_;
  StopSignal& stop_;
  bool armed_ = false;
  WaitCounters counters_;
  std::optional<Error> error_;
};

// Sleeps in a blocking read of the completion channel, as applications do.
class EventWait {
 public:
  EventWait(Device& device, ibv_cq* cq, bool solicited_only, StopSignal& stop)
      : core_(device, cq, solicited_only, stop), cq_(cq) {}

  int Next(ibv_wc& wc) {
    bool woken = false;
    for (;;) {
      const int polled = ibv_poll_cq(cq_, 1, &wc);
      if (polled != 0) return polled;
      if (woken) core_.CountEmptyWakeup();
      woken = false;
      if (!core_.armed()) {
        if (!core_.Arm()) return -1;
        continue;  // drain after arming
      }
      switch (core_.Sleep(wc)) {
        case EventCore::Wake::kEvent:
          if (!core_.Arm()) return -1;
          woken = true;
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

// Spins for a budget, then arms and sleeps. Armed only when it goes to sleep, so that a short wait
// makes no event at all. `Clock` is CpuCounter or PosixClock; the budget is in its ticks.
template <class Clock>
class HybridWait {
 public:
  HybridWait(Device& device, ibv_cq* cq, uint64_t spin_ticks, StopSignal& stop)
      : core_(device, cq, /*solicited_only=*/false, stop),
        cq_(cq),
        spin_ticks_(spin_ticks),
        stop_(stop) {}

  int Next(ibv_wc& wc) {
    for (;;) {
      const int polled = Spin(wc);
      if (polled != 0) return polled;
      if (stop_.stopped()) return 0;
      if (!core_.Arm()) return -1;
      const int drained = ibv_poll_cq(cq_, 1, &wc);
      if (drained != 0) return drained;
      switch (core_.Sleep(wc)) {
        case EventCore::Wake::kEvent: {
          const int after = ibv_poll_cq(cq_, 1, &wc);
          if (after != 0) return after;
          core_.CountEmptyWakeup();
          break;
        }
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
  // 0: the budget is used up and the CQ is empty.
  int Spin(ibv_wc& wc) {
    const uint64_t start = Clock::Now();
    do {
      const int polled = ibv_poll_cq(cq_, 1, &wc);
      if (polled != 0) return polled;
      if (stop_.stopped()) return 0;
    } while (Clock::Now() - start < spin_ticks_);
    return 0;
  }

  EventCore core_;
  ibv_cq* cq_;
  uint64_t spin_ticks_;
  const StopSignal& stop_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_WAIT_WAIT_H_
