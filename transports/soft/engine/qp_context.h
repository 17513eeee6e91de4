// What the requester and the responder half of one QP share: who it is, whom it talks to, its
// completion queues, and the two ways a work request ends.
//
// Owned by the QueuePair; used with the device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_QP_CONTEXT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_QP_CONTEXT_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "transports/soft/engine/environment.h"

namespace verbscope::soft {

class QueuePair;

struct QpContext {
  Environment& env;
  QueuePair& qp;
  uint32_t qpn = 0;
  uint32_t pd = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;

  ibv_qp_state state = IBV_QPS_RESET;
  PathId path = kNoPath;
  uint32_t dest_qpn = 0;
  uint32_t mtu = 1024;  // bytes
  uint32_t access = 0;  // ibv_access_flags that remote operations may use
  uint8_t min_rnr_timer = 0;
  uint8_t max_rd_atomic = 1;       // as requester
  uint8_t max_dest_rd_atomic = 1;  // as responder
  uint64_t ack_timeout_ns = 0;     // 0: never
  uint8_t retry_cnt = 7;
  uint8_t rnr_retry = 7;

  // The peer's responder acknowledges now and then without being asked, and so does this one
  // (responder.h): its requester has to ask for an ACK only where one is waited for.
  bool acks_unasked = false;

  // One half met an error that ends the connection; the QueuePair moves to ERR when that half
  // returns.
  bool broken = false;

  // Stores a completion. `released` and `slots`: see CompletionQueue::Push.
  void Complete(CompletionKind kind, CompletionQueue& cq, ibv_wc& wc, bool solicited,
                uint32_t* released, uint32_t slots) {
    if (env.filter != nullptr) [[unlikely]] {
      CompleteFiltered(kind, cq, wc, solicited, released, slots);
      return;
    }
    wc.qp_num = qpn;  // valid whatever the status, and what CompletionQueue::Purge goes by
    Store(kind, cq, wc, solicited, released, slots);
  }
  // The same as the filter wants it.
  void CompleteFiltered(CompletionKind kind, CompletionQueue& cq, ibv_wc& wc, bool solicited,
                        uint32_t* released, uint32_t slots);
  void Store(CompletionKind kind, CompletionQueue& cq, const ibv_wc& wc, bool solicited,
             uint32_t* released, uint32_t slots, uint32_t qp_num_xor = 0) {
    switch (cq.Push(wc, solicited, released, slots, qp_num_xor)) {
      case CompletionQueue::Pushed::kQuiet:
      case CompletionQueue::Pushed::kDead:
        return;
      case CompletionQueue::Pushed::kEvent:
        env.events->OnCompletionEvent(cq);
        return;
      case CompletionQueue::Pushed::kOverrun:
        ++env.counters.cq_overrun;
        env.events->OnCqError(cq);
        if (!env.rxe()) return;
        // rxe 6.1 forgets the completion, and the CQ goes on; only a receive's loss ends its QP.
        cq.Revive();
        broken |= kind == CompletionKind::kReceive;
        return;
    }
  }

  bool Send(const Header& header, PayloadPieces payload) {
    if (!env.sink->Send(path, header, payload)) return false;
    ++env.counters.sent_pkts;
    return true;
  }
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_QP_CONTEXT_H_
