// What counting costs per completion event: it is the one thing that this transport adds to a path
// that a measurement runs through (event mode), so it must be small beside the system call of
// ibv_get_cq_event.
#include <benchmark/benchmark.h>

#include <vector>

#include "transports/ibverbs/live_objects.h"

namespace verbscope {
namespace {

void BM_EventTakenAndAcknowledged(benchmark::State& state) {
  LiveObjects live;
  std::vector<ibv_cq> cqs(static_cast<size_t>(state.range(0)));
  for (ibv_cq& cq : cqs) live.Add(&cq);
  size_t next = 0;
  for (auto _ : state) {
    ibv_cq* cq = &cqs[next];
    next = next + 1 == cqs.size() ? 0 : next + 1;
    live.EventTaken(cq);
    live.EventsAcknowledged(cq, 1);
  }
}
BENCHMARK(BM_EventTakenAndAcknowledged)->Arg(1)->Arg(1024);

}  // namespace
}  // namespace verbscope
