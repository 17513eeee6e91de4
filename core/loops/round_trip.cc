#include "core/loops/round_trip.h"

#include "core/loops/with_waiter.h"

namespace verbscope {
namespace {

// Waits for one completion. False: the loop ends as `counts` says.
template <class Waiter>
bool Await(Waiter& waiter, LoopEnd on_failure, LoopCounts& counts) {
  ibv_wc wc;
  const int got = waiter.Next(wc);
  if (got <= 0) [[unlikely]] {
    counts.end = got == 0 ? LoopEnd::kStopped : LoopEnd::kPollFailed;
    return false;
  }
  if (wc.status != IBV_WC_SUCCESS) [[unlikely]] {
    counts.end = on_failure;
    counts.failure = wc;
    return false;
  }
  ++counts.received;
  return true;
}

template <class TickClock, class Waiter>
LoopCounts Request(const RoundTripSetup& setup, LoopLength length, Waiter& waiter) {
  LoopCounts counts;
  uint64_t begun = TickClock::Now();
  counts.first_ticks = counts.last_ticks = begun;
  const uint64_t end_ticks = length.ticks > UINT64_MAX - begun ? UINT64_MAX : begun + length.ticks;
  setup.recorder->Start(begun);
  for (;;) {
    ibv_send_wr* bad = nullptr;
    const int result = ibv_post_send(setup.qp, setup.request, &bad);
    if (result != 0) [[unlikely]] {
      counts.end = LoopEnd::kPostFailed;
      counts.post_errno = result;
      return counts;
    }
    ++counts.sent;
    if (!Await(waiter, LoopEnd::kSendFailed, counts)) return counts;
    const uint64_t now = TickClock::Now();
    setup.recorder->Record(now, now - begun);
    counts.last_ticks = now;
    if (++counts.samples >= length.messages || now >= end_ticks) return counts;
    begun = TickClock::Now();
  }
}

template <class Waiter>
LoopCounts Serve(Waiter& waiter) {
  LoopCounts counts;
  while (Await(waiter, LoopEnd::kRecvFailed, counts)) {
  }
  return counts;
}

}  // namespace

LoopOutcome RunRoundTrips(const RoundTripSetup& setup, LoopLength length, WaitMode wait,
                          const Clock& clock) {
  const Waited waited = {.device = setup.device,
                         .cq = setup.send_cq,
                         .stop = setup.stop,
                         .shares_cpu = setup.shares_cpu};
  return WithWaiter(waited, wait, clock, [&]<class TickClock>(auto& waiter) {
    return Request<TickClock>(setup, length, waiter);
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
