#include "core/loops/payload_ping.h"

#include "core/wait/wait.h"

namespace verbscope {
namespace {

template <LoopRole kRole, bool kPause, bool kYield, class TickClock>
class PayloadPingLoop {
 public:
  PayloadPingLoop(const PayloadPingSetup& setup, LoopLength length)
      : setup_(setup), length_(length), state_(*setup.state) {}

  LoopCounts Run() {
    if (kRole == LoopRole::kRequester && !Post()) return counts_;
    if (!Hear()) return counts_;
    uint64_t previous = TickClock::Now();
    counts_.first_ticks = counts_.last_ticks = previous;
    const uint64_t end_ticks = EndOf(previous, length_.ticks);
    if (!Post()) return counts_;
    setup_.recorder->Start(previous);
    for (;;) {
      if (!Hear()) return counts_;
      const uint64_t now = TickClock::Now();
      const uint64_t sample = now - previous;
      counts_.last_ticks = previous = now;
      ++counts_.samples;
      if constexpr (kRole == LoopRole::kRequester) {
        if (counts_.samples >= length_.messages || now >= end_ticks) {
          setup_.recorder->Record(now, sample);
          return counts_;
        }
      }
      const bool posted = Post();
      setup_.recorder->Record(now, sample);
      if (!posted) return counts_;
    }
  }

 private:
  bool Post() {
    const bool signal = ++state_.unsignalled >= setup_.signal_every;
    // The one signalled send before is reaped first: the queue holds two periods.
    while (signal && state_.signal_pending) {
      if (!Look()) return false;
    }
    *setup_.outgoing = ++state_.said;
    if (!PostSends(setup_.qp, signal ? setup_.signalled_send : setup_.send, counts_)) return false;
    ++counts_.sent;
    if (signal) {
      state_.unsignalled = 0;
      state_.signal_pending = true;
    }
    return true;
  }

  bool Hear() {
    const auto expected = static_cast<uint8_t>(state_.heard + 1);
    for (uint32_t polls = 1;; ++polls) {
      if (__atomic_load_n(setup_.incoming, __ATOMIC_ACQUIRE) == expected) [[likely]] {
        state_.heard = expected;
        ++counts_.received;
        return true;
      }
      if (polls % kPollsPerLook == 0 && !Look()) return false;
      RestAfterPoll<kPause, kYield>(polls);
    }
  }

  // The send CQ and the stop flag.
  bool Look() {
    ibv_wc wc;
    const int polled = ibv_poll_cq(setup_.send_cq, 1, &wc);
    if (polled == 0) {
      if (!setup_.stop->stopped()) return true;
      counts_.end = LoopEnd::kStopped;
      return false;
    }
    if (!Judge(polled, wc, LoopEnd::kSendFailed, counts_)) return false;
    state_.signal_pending = false;
    return true;
  }

  const PayloadPingSetup setup_;
  const LoopLength length_;
  PayloadPingState& state_;
  LoopCounts counts_;
};

template <LoopRole kRole, bool kPause, bool kYield>
LoopOutcome RunClock(const PayloadPingSetup& setup, LoopLength length, const Clock& clock) {
  const StopAttachment attachment(*setup.stop);
  if (clock.uses_cpu_counter()) {
    return {PayloadPingLoop<kRole, kPause, kYield, CpuCounter>(setup, length).Run(), {}, {}};
  }
  return {PayloadPingLoop<kRole, kPause, kYield, PosixClock>(setup, length).Run(), {}, {}};
}

template <LoopRole kRole>
LoopOutcome RunRole(const PayloadPingSetup& setup, LoopLength length, WaitMode wait,
                    const Clock& clock) {
  if (wait.kind == WaitKind::kBusyPause) {
    return setup.shares_cpu ? RunClock<kRole, true, true>(setup, length, clock)
                            : RunClock<kRole, true, false>(setup, length, clock);
  }
  return setup.shares_cpu ? RunClock<kRole, false, true>(setup, length, clock)
                          : RunClock<kRole, false, false>(setup, length, clock);
}

}  // namespace

LoopOutcome RunPayloadPing(LoopRole role, const PayloadPingSetup& setup, LoopLength length,
                           WaitMode wait, const Clock& clock) {
  return role == LoopRole::kRequester ? RunRole<LoopRole::kRequester>(setup, length, wait, clock)
                                      : RunRole<LoopRole::kResponder>(setup, length, wait, clock);
}

}  // namespace verbscope
