// Posting, packets and time.
#include "transports/soft/engine/queue_pair.h"

#include <algorithm>
#include <cerrno>

namespace verbscope::soft {

QueuePair::QueuePair(Environment& env, const QpOptions& options)
    : options_(options),
      context_{.env = env,
               .qp = *this,
               .qpn = options.qpn,
               .pd = options.pd,
               .send_cq = options.send_cq,
               .recv_cq = options.recv_cq},
      own_queue_(options.srq != nullptr ? 0 : options.cap.max_recv_wr, options.cap.max_recv_sge),
      requester_(context_, options.cap, options.signal_all || env.Has(Defect::kSignalAll)),
      responder_(context_, options.srq != nullptr ? *options.srq : own_queue_,
                 options.srq != nullptr) {
  own_queue_.SetPd(options.pd);
  attributes_.qp_state = IBV_QPS_RESET;
  attributes_.cap = options.cap;
}

int QueuePair::PostSend(ibv_send_wr* wr, ibv_send_wr** bad) {
  const ibv_qp_state state = context_.state;
  ibv_send_wr* const first = wr;
  int result = 0;
  if (state != IBV_QPS_RTS && state != IBV_QPS_SQD && state != IBV_QPS_ERR) [[unlikely]] {
    result = EINVAL;
  }
  for (; wr != nullptr && result == 0; wr = wr->next) {
    result = requester_.Post(*wr);
    if (result != 0) break;
  }
  if (result != 0) [[unlikely]]
    *bad = context_.env.Has(Defect::kWrongBadWr) ? first : wr;
  if (state == IBV_QPS_ERR) [[unlikely]]
    requester_.Flush();
  return result;
}

int QueuePair::PostReceive(ibv_recv_wr* wr, ibv_recv_wr** bad) {
  ibv_recv_wr* const first = wr;
  int result = 0;
  if (context_.state == IBV_QPS_RESET || options_.srq != nullptr) [[unlikely]]
    result = EINVAL;
  for (; wr != nullptr && result == 0; wr = wr->next) {
    result = own_queue_.Post(*wr);
    if (result != 0) break;
  }
  if (result != 0) [[unlikely]]
    *bad = context_.env.Has(Defect::kWrongBadWr) ? first : wr;
  // On rxe 6.1 nobody looks at the queue any more.
  if (context_.state == IBV_QPS_ERR && !context_.env.rxe()) [[unlikely]]
    responder_.Flush(false);
  return result;
}

void QueuePair::Receive(PathId path, const Header& header, std::span<const std::byte> payload) {
  if (path != context_.path) [[unlikely]] {
    ++context_.env.counters.wrong_source;
    return;
  }
  const ibv_qp_state state = context_.state;
  if (Info(header.opcode).Is(kOpResponse)) {
    if (!connected()) {
      ++context_.env.counters.dropped_state;
      return;
    }
    requester_.OnResponse(header, payload);
  } else {
    if (!connected() && state != IBV_QPS_RTR) {
      ++context_.env.counters.dropped_state;
      return;
    }
    if (state == IBV_QPS_RTR && !established_) [[unlikely]] {
      established_ = true;
      if (!context_.env.rxe()) context_.env.events->OnQpEvent(IBV_EVENT_COMM_EST, *this);
    }
    responder_.Receive(header, payload);
  }
  AfterStep();
}

bool QueuePair::Transmit() {
  // Spares the work of preparing a packet again and again while the link is full.
  if (!context_.env.sink->CanSend(context_.path)) [[unlikely]] {
    return responder_.Owes() || requester_.Unsent();
  }
  bool more = responder_.Pump();
  if (!more) more = requester_.Pump();
  AfterStep();
  // What the responder still owes after an error (its NAK) leaves from ERR too.
  if (context_.state == IBV_QPS_ERR && responder_.Owes()) more = responder_.Pump();
  if (drain_event_) [[unlikely]]
    CheckDrained();
  return more;
}

bool QueuePair::TransmitRequests() {
  const bool more = requester_.Pump();
  AfterStep();
  return more;
}

bool QueuePair::Tick(uint64_t now_ns) {
  if (!connected() && context_.state != IBV_QPS_RTR) return false;
  const bool owes = responder_.Tick(now_ns);
  if (!connected()) return owes;
  const bool may_send = requester_.Tick(now_ns);
  AfterStep();
  return owes || may_send;
}

std::optional<uint64_t> QueuePair::NextTimer() const {
  if (!connected() && context_.state != IBV_QPS_RTR) return std::nullopt;
  const std::optional<uint64_t> ack = responder_.NextTimer();
  const std::optional<uint64_t> request = connected() ? requester_.NextTimer() : std::nullopt;
  if (ack && request) return std::min(*ack, *request);
  return ack ? ack : request;
}

void QueuePair::AfterStep() {
  if (!context_.broken) [[likely]]
    return;
  context_.broken = false;
  EnterError(std::nullopt);
}

void QueuePair::CheckDrained() {
  if (context_.state != IBV_QPS_SQD) {
    drain_event_ = false;
    return;
  }
  if (!requester_.Drained()) return;
  drain_event_ = false;
  context_.env.events->OnQpEvent(IBV_EVENT_SQ_DRAINED, *this);
}

void QueuePair::EnterError(std::optional<ibv_event_type> event) {
  if (context_.state == IBV_QPS_ERR) return;
  context_.state = IBV_QPS_ERR;
  attributes_.qp_state = IBV_QPS_ERR;
  if (event) context_.env.events->OnQpEvent(*event, *this);
  requester_.Flush();
  responder_.Flush(false);
  if (options_.srq != nullptr && !context_.env.rxe()) {
    context_.env.events->OnQpEvent(IBV_EVENT_QP_LAST_WQE_REACHED, *this);
  }
}

void QueuePair::Reset() {
  context_.state = IBV_QPS_RESET;
  context_.send_cq->Purge(context_.qpn);
  context_.recv_cq->Purge(context_.qpn);
  own_queue_.Clear();
  requester_.Reset();
  responder_.Reset();
  context_.broken = false;
  context_.path = kNoPath;
  context_.acks_unasked = false;
  established_ = drain_event_ = false;
  const ibv_qp_cap cap = attributes_.cap;
  attributes_ = {};
  attributes_.cap = cap;
  attributes_.qp_state = IBV_QPS_RESET;
}

}  // namespace verbscope::soft
