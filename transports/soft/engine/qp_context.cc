#include "transports/soft/engine/qp_context.h"

namespace verbscope::soft {

void QpContext::CompleteFiltered(CompletionKind kind, CompletionQueue& cq, ibv_wc& wc,
                                 bool solicited, uint32_t* released, uint32_t slots) {
  wc.qp_num = qpn;
  const CompletionFate fate = env.filter->Apply(kind, wc);
  const uint32_t qp_num_xor = wc.qp_num ^ qpn;
  wc.qp_num = qpn;  // what CompletionQueue::Purge goes by
  if (fate == CompletionFate::kDrop) {
    *released += slots;
    return;
  }
  const CompletionQueue::Held completion = {.wc = wc,
                                            .solicited = solicited,
                                            .released = released,
                                            .queue_slots = slots,
                                            .qp_num_xor = qp_num_xor};
  // A second one to be held is the one that the first has waited for.
  if (fate == CompletionFate::kHoldBehind && !cq.holds()) {
    cq.Hold(completion);
    return;
  }
  Store(kind, cq, wc, solicited, released, slots, qp_num_xor);
  if (const auto held = cq.TakeHeld()) {
    Store(kind, cq, held->wc, held->solicited, held->released, held->queue_slots,
          held->qp_num_xor);
  }
}

}  // namespace verbscope::soft
