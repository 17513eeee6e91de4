#include "core/loops/round_trip.h"

#include "core/loops/with_waiter.h"

namespace verbscope {
namespace {

template <class TickClock, class Waiter, class Results>
LoopCounts Request(const RoundTripSetup& setup, LoopLength length, Waiter& waiter,
                   Results results) {
  LoopCounts counts;
  uint64_t begun = TickClock::Now();
  counts.first_ticks = counts.last_ticks = begun;
  const uint64_t end_ticks = EndOf(begun, length.ticks);
  setup.recorder->Start(begun);
  for (;;) {
    results.Prepare(*setup.request);
    begun = TickClock::Now();
    if (!PostSends(setup.qp, setup.request, counts)) return counts;
    ++counts.sent;
    ibv_wc wc;
    if (!Judge(waiter.Next(&wc, 1), wc, LoopEnd::kSendFailed, counts)) return counts;
    const uint64_t now = TickClock::Now();
    ++counts.received;
    setup.recorder->Record(now, now - begun);
    counts.last_ticks = now;
    ++counts.samples;
    if (!results.Check(counts)) return counts;
    if (counts.samples >= length.messages || now >= end_ticks) return counts;
  }
}

template <class Waiter>
LoopCounts Serve(Waiter& waiter) {
  LoopCounts counts;
  ibv_wc wc;
  while (Judge(waiter.Next(&wc, 1), wc, LoopEnd::kRecvFailed, counts)) ++counts.received;
  return counts;
}

template <class MakeResults>
LoopOutcome RunRequests(const RoundTripSetup& setup, LoopLength length, WaitMode wait,
                        const Clock& clock, MakeResults make_results) {
  const Waited waited = {.device = setup.device,
                         .cq = setup.send_cq,
                         .stop = setup.stop,
                         .shares_cpu = setup.shares_cpu};
  return WithWaiter(waited, wait, clock, [&]<class TickClock>(auto& waiter) {
    return Request<TickClock>(setup, length, waiter, make_results());
  });
}

}  // namespace

LoopOutcome RunRoundTrips(const RoundTripSetup& setup, LoopLength length, WaitMode wait,
                          const Clock& clock) {
  return WithResults(setup.atomic, setup.atomic_op, [&](auto make_results) {
    return RunRequests(setup, length, wait, clock, make_results);
  });
}

LoopOutcome RunServed(const RoundTripSetup& setup, WaitMode wait, const Clock& clock) {
  const Waited waited = {.device = setup.device,
                         .cq = setup.recv_cq,
                         .stop = setup.stop,
                         .shares_cpu = setup.shares_cpu};
  return WithWaiter(waited, wait, clock,
                    [&]<class TickClock>(auto& waiter) { return Serve(waiter); });
}

}  // namespace verbscope
