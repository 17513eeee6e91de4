#include "core/loops/ping_pong.h"

#include "core/loops/with_waiter.h"

namespace verbscope {
namespace {

template <LoopRole kRole>
LoopOutcome RunRole(const PingPongSetup& setup, LoopLength length, WaitMode wait,
                    const Clock& clock) {
  const Waited waited = {.device = setup.device,
                         .cq = setup.recv_cq,
                         .stop = setup.stop,
                         .shares_cpu = setup.shares_cpu};
  return WithWaiter(waited, wait, clock, [&]<class TickClock>(auto& waiter) {
    return PingPongLoop<kRole, std::remove_reference_t<decltype(waiter)>, TickClock>(setup, length,
                                                                                     waiter)
        .Run();
  });
}

}  // namespace

LoopOutcome RunPingPong(LoopRole role, const PingPongSetup& setup, LoopLength length, WaitMode wait,
                        const Clock& clock) {
  return role == LoopRole::kRequester ? RunRole<LoopRole::kRequester>(setup, length, wait, clock)
                                      : RunRole<LoopRole::kResponder>(setup, length, wait, clock);
}

}  // namespace verbscope
