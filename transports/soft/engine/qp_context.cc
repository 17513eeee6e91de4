#include "transports/soft/engine/qp_context.h"

namespace verbscope::soft {

void QpContext::CompleteFiltered(CompletionKind kind, CompletionQueue& cq, ibv_wc& wc,
                                 bool solicited, uint32_t* released, uint32_t slots) {
  const CompletionFate fate = env.filter->Apply(kind, wc);
  wc.qp_num = qpn;
  if (fate == CompletionFate::kDrop) {
    *released += slots;
    return;
  }
  const CompletionQueue::Held completion = {
      .wc = wc, .solicited = solicited, .released = released, .queue_slots = slots};
  // A second one to be held is the one that the first has waited for.
  if (fate == CompletionFate::kHoldBehind && !cq.holds()) {
    cq.Hold(completion);
    return;
  }
  Store(kind, cq, wc, solicited, released, slots);
  if (const auto held = cq.TakeHeld()) {
    Store(kind, cq, held->wc, held->solicited, held->released, held->queue_slots);
  }
}

}  // namespace verbscope::soft
