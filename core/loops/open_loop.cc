#include "core/loops/open_loop.h"

#include "core/loops/with_waiter.h"

namespace verbscope {
namespace {

template <bool kAnswered, class MakeResults>
LoopOutcome RunShape(const OpenLoopSetup& setup, LoopLength length, WaitMode wait,
                     const Clock& clock, MakeResults make_results) {
  const Waited waited = {.device = setup.device,
                         .cq = kAnswered ? setup.recv_cq : setup.send_cq,
                         .stop = setup.stop,
                         .shares_cpu = setup.shares_cpu};
  return WithWaiter(waited, wait, clock, [&]<class TickClock>(auto& waiter) {
    using Waiter = std::remove_reference_t<decltype(waiter)>;
    return OpenLoop<kAnswered, decltype(make_results()), Waiter, TickClock>(setup, length, waiter,
                                                                            make_results())
        .Run();
  });
}

}  // namespace

LoopOutcome RunOpenLoop(const OpenLoopSetup& setup, LoopLength length, WaitMode wait,
                        const Clock& clock) {
  if (setup.answered) {
    return RunShape<true>(setup, length, wait, clock, [] { return NoResults(); });
  }
  return WithResults(setup.atomic, setup.atomic_op, [&](auto make_results) {
    return RunShape<false>(setup, length, wait, clock, make_results);
  });
}

}  // namespace verbscope
