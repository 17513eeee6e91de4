// One instantiation of a loop for each way of waiting and each clock, chosen once before it runs.
// For the .cc files of loops only.
#ifndef VERBSCOPE_CORE_LOOPS_WITH_WAITER_H_
#define VERBSCOPE_CORE_LOOPS_WITH_WAITER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "core/clock/clock.h"
#include "core/loops/loop.h"
#include "core/plan/plan.h"
#include "core/wait/stop.h"
#include "core/wait/wait.h"
#include "transports/device.h"

namespace verbscope {

// What a loop waits for.
struct Waited {
  Device* device = nullptr;
  ibv_cq* cq = nullptr;
  StopSignal* stop = nullptr;
  bool shares_cpu = false;  // busy pollers yield
};

// `run` has `template <class TickClock> LoopCounts operator()(auto& waiter)`.
template <class TickClock, class Run, class Waiter>
LoopOutcome RunWith(const Waited& waited, Run& run, Waiter waiter) {
  const StopAttachment attachment(*waited.stop);
  LoopOutcome outcome{run.template operator()<TickClock>(waiter), waiter.counters(), std::nullopt};
  if constexpr (requires { waiter.error(); }) outcome.wait_error = waiter.error();
  return outcome;
}

template <class TickClock, class Run>
LoopOutcome ChooseWaiter(const Waited& waited, WaitMode wait, const Clock& clock, Run& run) {
  StopSignal& stop = *waited.stop;
  ibv_cq* const cq = waited.cq;
  switch (wait.kind) {
    case WaitKind::kBusy:
      if (waited.shares_cpu) return RunWith<TickClock>(waited, run, SharedBusyPoll(cq, stop));
      return RunWith<TickClock>(waited, run, BusyPoll(cq, stop));
    case WaitKind::kBusyPause:
      if (waited.shares_cpu) return RunWith<TickClock>(waited, run, SharedBusyPollPause(cq, stop));
      return RunWith<TickClock>(waited, run, BusyPollPause(cq, stop));
    case WaitKind::kEvent:
    case WaitKind::kSolicited:
      return RunWith<TickClock>(
          waited, run, EventWait(*waited.device, cq, wait.kind == WaitKind::kSolicited, stop));
    case WaitKind::kHybrid:
      return RunWith<TickClock>(
          waited, run,
          HybridWait<TickClock>(*waited.device, cq,
                                clock.scale().Ticks(static_cast<uint64_t>(wait.spin_ns)), stop));
  }
  return {};
}

template <class Run>
LoopOutcome WithWaiter(const Waited& waited, WaitMode wait, const Clock& clock, Run run) {
  return clock.uses_cpu_counter() ? ChooseWaiter<CpuCounter>(waited, wait, clock, run)
                                  : ChooseWaiter<PosixClock>(waited, wait, clock, run);
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_LOOPS_WITH_WAITER_H_
