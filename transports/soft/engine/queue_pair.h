// One RC queue pair: its state, its two halves, and the rules of ibv_modify_qp(3) and of posting.
//
// Made by the Engine and handed out by pointer; a device derives its verbs object from it or keeps
// it beside one. Everything here is called with the device's lock held and does no I/O of its own:
// packets leave through Environment::sink, completions through the CQs, events through EventSink.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_QUEUE_PAIR_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <span>

#include "transports/soft/engine/qp_context.h"
#include "transports/soft/engine/receive_queue.h"
#include "transports/soft/engine/requester.h"
#include "transports/soft/engine/responder.h"

namespace verbscope::soft {

struct QpOptions {
  uint32_t qpn = 0;  // 24 bits
  uint32_t pd = 0;
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* recv_cq = nullptr;
  ReceiveQueue* srq = nullptr;  // null: a receive queue of its own
  ibv_qp_cap cap = {};
  bool signal_all = false;
  void* owner = nullptr;  // for the owner of the engine: the verbs object
};

class QueuePair {
 public:
  QueuePair(Environment& env, const QpOptions& options);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  // ibv_post_send(3): 0, or EINVAL (state, opcode, SGEs, inline size), ENOMEM (full); *bad is the
  // first request not taken, those before it stay posted. In ERR requests are taken and flushed at
  // once.
  int PostSend(ibv_send_wr* wr, ibv_send_wr** bad);
  // ibv_post_recv(3): likewise; EINVAL in RESET and on a QP with an SRQ.
  int PostReceive(ibv_recv_wr* wr, ibv_recv_wr** bad);

  // ibv_modify_qp(3). 0 or EINVAL. Attributes outside the RC rules of each transition are refused
  // (IBTA table 91); ranges of values that only the device knows are the caller's to check.
  int Modify(const ibv_qp_attr& attributes, int mask);
  // The required and the allowed attributes of a transition; nullopt: no such transition.
  struct TransitionMask {
    int required = 0;
    int optional = 0;
  };
  static std::optional<TransitionMask> MaskOf(ibv_qp_state from, ibv_qp_state to);
  void Query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) const;

  // The path its peer is reached by; packets from any other are dropped. kNoPath until set.
  // `acks_unasked`: see QpContext; both ends must have it.
  void SetPath(PathId path, bool acks_unasked = false) {
    context_.path = path;
    context_.acks_unasked = acks_unasked;
  }
  PathId path() const { return context_.path; }

  void Receive(PathId path, const Header& header, std::span<const std::byte> payload);
  // Sends what is owed and what may be sent. True: the link is full and there is more.
  bool Transmit();
  // Only requests: right after a post, so that a message leaves before an ACK that is owed.
  bool TransmitRequests();
  bool Tick(uint64_t now_ns);  // true: Transmit may have something to send
  std::optional<uint64_t> NextTimer() const;

  // To ERR, everything flushed. `event`: raised first unless the QP is in ERR already.
  void EnterError(std::optional<ibv_event_type> event);
  void Reset();

  ibv_qp_state state() const { return context_.state; }
  uint32_t qpn() const { return context_.qpn; }
  uint32_t dest_qpn() const { return context_.dest_qpn; }
  uint32_t pd() const { return context_.pd; }
  CompletionQueue* send_cq() const { return context_.send_cq; }
  CompletionQueue* recv_cq() const { return context_.recv_cq; }
  ReceiveQueue* srq() const { return options_.srq; }
  void* owner() const { return options_.owner; }
  const ibv_qp_cap& cap() const { return options_.cap; }
  // Largest inline data that a post takes, in bytes.
  uint32_t max_inline() const { return requester_.max_inline(); }
  // Requests that can be posted now.
  uint32_t free_send_slots() const { return requester_.queue().free_slots(); }
  // Takes part in the list of QPs that have to transmit (Engine only).
  bool listed = false;

 private:
  void Apply(const ibv_qp_attr& attributes, int mask);
  bool ValuesInRange(const ibv_qp_attr& attributes, int mask) const;
  // What the rules of the transition say: 0 or EINVAL.
  int CheckModify(const ibv_qp_attr& attributes, int mask, ibv_qp_state to) const;
  void EnterState(ibv_qp_state to, const ibv_qp_attr& attributes, int mask);
  // The halves that begin to work in a new state.
  void StartHalves(ibv_qp_state from, ibv_qp_state to);
  // Requests may be sent, and answers come.
  bool connected() const { return context_.state == IBV_QPS_RTS || context_.state == IBV_QPS_SQD; }
  void AfterStep();  // moves to ERR if one half broke
  void CheckDrained();

  const QpOptions options_;
  QpContext context_;
  ReceiveQueue own_queue_;
  Requester requester_;
  Responder responder_;
  ibv_qp_attr attributes_ = {};  // as modified so far
  bool drain_event_ = false;     // SQ_DRAINED is still to be raised
  bool established_ = false;     // COMM_EST was raised
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_QUEUE_PAIR_H_
