#include "core/loops/ping_pong.h"

namespace verbscope {
namespace {

template <PingPongRole kRole, class TickClock, class Waiter>
PingPongOutcome RunWith(const PingPongSetup& setup, PingPongLength length, Waiter waiter) {
  const StopAttachment attachment(*setup.stop);
  PingPongLoop<kRole, Waiter, TickClock> loop(setup, length, waiter);
  PingPongOutcome outcome{loop.Run(), waiter.counters(), std::nullopt};
  if constexpr (requires { waiter.error(); }) outcome.wait_error = waiter.error();
  return outcome;
}

template <PingPongRole kRole, class TickClock>
PingPongOutcome ChooseWaiter(const PingPongSetup& setup, PingPongLength length, WaitMode wait,
                             const Clock& clock) {
  StopSignal& stop = *setup.stop;
  ibv_cq* const cq = setup.recv_cq;
  switch (wait.kind) {
    case WaitKind::kBusy:
      if (setup.shares_cpu) {
        return RunWith<kRole, TickClock>(setup, length, SharedBusyPoll(cq, stop));
      }
      return RunWith<kRole, TickClock>(setup, length, BusyPoll(cq, stop));
    case WaitKind::kBusyPause:
      if (setup.shares_cpu) {
        return RunWith<kRole, TickClock>(setup, length, SharedBusyPollPause(cq, stop));
      }
      return RunWith<kRole, TickClock>(setup, length, BusyPollPause(cq, stop));
    case WaitKind::kEvent:
    case WaitKind::kSolicited:
      return RunWith<kRole, TickClock>(
          setup, length, EventWait(*setup.device, cq, wait.kind == WaitKind::kSolicited, stop));
    case WaitKind::kHybrid:
      return RunWith<kRole, TickClock>(
          setup, length,
          HybridWait<TickClock>(*setup.device, cq,
                                clock.scale().Ticks(static_cast<uint64_t>(wait.spin_ns)), stop));
  }
  return {};
}

template <class TickClock>
PingPongOutcome ChooseRole(PingPongRole role, const PingPongSetup& setup, PingPongLength length,
                           WaitMode wait, const Clock& clock) {
  return role == PingPongRole::kRequester
             ? ChooseWaiter<PingPongRole::kRequester, TickClock>(setup, length, wait, clock)
             : ChooseWaiter<PingPongRole::kResponder, TickClock>(setup, length, wait, clock);
}

}  // namespace

PingPongOutcome RunPingPong(PingPongRole role, const PingPongSetup& setup, PingPongLength length,
                            WaitMode wait, const Clock& clock) {
  return clock.uses_cpu_counter() ? ChooseRole<CpuCounter>(role, setup, length, wait, clock)
                                  : ChooseRole<PosixClock>(role, setup, length, wait, clock);
}

}  // namespace verbscope
