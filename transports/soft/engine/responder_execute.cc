// What each request does to memory and to the receive queue.
#include <algorithm>
#include <cstring>

#include "transports/soft/engine/dma.h"
#include "transports/soft/engine/queue_pair.h"
#include "transports/soft/engine/responder.h"
#include "transports/soft/engine/spoiled_data.h"

namespace verbscope::soft {

void Responder::Accept(const Header& header, bool ends, uint32_t psns, bool answered) {
  expected_psn_ = PsnAdd(expected_psn_, psns);
  nak_sent_ = false;
  if (nak_pending_) [[unlikely]]
    NakOvertaken();
  if (ends) msn_ = (msn_ + 1) & kPsnMask;
  if (answered) return;
  if (header.ack_request) {
    QueueAck(header.psn);
  } else if (ends && context_.acks_unasked) {
    CountUnasked(header.psn);
  }
}

bool Responder::TakeReceive() {
  if (queue_.empty()) return false;
  queue_.Pop(receive_);
  has_receive_ = true;
  received_ = 0;
  ++context_.env.counters.rdma_recvs;
  if (shared_ && queue_.LimitReached()) {
    context_.env.events->OnSrqEvent(IBV_EVENT_SRQ_LIMIT_REACHED, queue_);
  }
  return true;
}

Responder::Stored Responder::Scatter(std::span<const std::byte> payload) {
  if (payload.empty()) return TakesEmpty() ? Stored::kYes : Stored::kBadKey;
  if (received_ + payload.size() > receive_.capacity) return Stored::kTooLong;
  uint64_t skip = received_;
  received_ += payload.size();
  for (uint32_t i = 0; i < receive_.sges && !payload.empty(); ++i) {
    const ibv_sge& sge = receive_.sge[i];
    if (skip >= sge.length) {
      skip -= sge.length;
      continue;
    }
    const size_t part = std::min<size_t>(payload.size(), sge.length - skip);
    std::byte* to = context_.env.memory.Resolve(sge.lkey, sge.addr + skip, part, queue_.pd(),
                                                IBV_ACCESS_LOCAL_WRITE);
    if (to == nullptr) return Stored::kBadKey;
    DmaCopy(to, payload.data(), part);
    payload = payload.subspan(part);
    skip = 0;
  }
  return Stored::kYes;
}

bool Responder::TakesEmpty() const {
  if (!context_.env.Has(Defect::kEmptyKey)) [[likely]]
    return true;
  const std::span sges(receive_.sge.data(), receive_.sges);
  return std::all_of(sges.begin(), sges.end(), [this](const ibv_sge& sge) {
    return context_.env.memory.Resolve(sge.lkey, sge.addr, 0, queue_.pd(),
                                       IBV_ACCESS_LOCAL_WRITE) != nullptr;
  });
}

Responder::Stored Responder::ScatterSpoiled(std::span<const std::byte> payload) {
  const uint64_t end = received_ + payload.size();
  if (payload.empty() || end > receive_.capacity) return Scatter(payload);
  const SpoiledData data(*context_.env.data_filter, payload);
  if (data.skip()) {
    received_ = end;
    return Stored::kYes;
  }
  const Stored stored = Scatter(data.bytes());
  if (stored == Stored::kYes && data.write_past()) {
    const std::span sges(&receive_.sge[0], receive_.sges);
    WritePast(context_.env.memory, sges, end, queue_.pd());
  }
  return stored;
}

void Responder::CompleteReceive(ibv_wc& wc, bool solicited) {
  wc.wr_id = receive_.wr_id;
  has_receive_ = false;
  context_.Complete(CompletionKind::kReceive, *context_.recv_cq, wc, solicited, queue_.released(),
                    1);
}

void Responder::FailReceive(ibv_wc_status status) {
  ibv_wc wc = {};
  wc.status = status;
  CompleteReceive(wc, false);
}

void Responder::ExecuteSend(const Header& header, const OpcodeInfo& info,
                            std::span<const std::byte> payload) {
  if (info.Is(kOpStarts) && !TakeReceive()) {
    NotReady();
    return;
  }
  const bool rxe = context_.env.rxe();
  const bool ends = info.Is(kOpEnds);
  const bool spoils = ends && context_.env.data_filter != nullptr;
  switch (spoils ? ScatterSpoiled(payload) : Scatter(payload)) {
    case Stored::kYes:
      break;
    case Stored::kTooLong:
      RefuseSilently(rxe ? kNakRemoteOperation : kNakInvalidRequest);
      if (context_.env.Has(Defect::kWrongStatus)) {
        FailReceive(IBV_WC_LOC_PROT_ERR);
      } else {
        FailReceive(rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR);
      }
      return;
    case Stored::kBadKey:
      RefuseSilently(kNakRemoteOperation);
      FailReceive(rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR);
      return;
  }
  open_ = ends ? Open::kNone : Open::kSend;
  Accept(header, ends, 1);
  if (!ends) return;
  ++context_.env.counters.rdma_sends;
  if (info.Is(kOpIeth)) {
    // No key of this device can be invalidated from outside (it has no memory windows). The data
    // has arrived, so the requester hears no NAK; the receiver's request and QP fail (IBTA 9.9.3,
    // class J).
    FailReceive(IBV_WC_REM_INV_REQ_ERR);
    QueueAck(header.psn);
    context_.broken = true;
    return;
  }
  ibv_wc wc = {};
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = IBV_WC_RECV;
  wc.byte_len = static_cast<uint32_t>(received_);
  wc.src_qp = context_.dest_qpn;
  if (info.Is(kOpImm)) {
    wc.imm_data = header.immediate;
    wc.wc_flags = IBV_WC_WITH_IMM;
  }
  CompleteReceive(wc, header.solicited);
}

void Responder::ExecuteWrite(const Header& header, const OpcodeInfo& info,
                             std::span<const std::byte> payload) {
  const bool starts = info.Is(kOpStarts);
  const bool ends = info.Is(kOpEnds);
  const auto bytes = static_cast<uint32_t>(payload.size());
  const uint32_t left = starts ? header.dma_length : write_left_;
  const bool forbidden = (context_.access & IBV_ACCESS_REMOTE_WRITE) == 0;
  if (forbidden || left > context_.env.options.max_message_bytes ||
      (ends ? bytes != left : bytes >= left)) {
    Refuse(kNakInvalidRequest, IBV_EVENT_QP_REQ_ERR);
    return;
  }
  const bool immediate = info.Is(kOpImm) && !context_.env.Has(Defect::kNoImmReceive);
  if (immediate && !TakeReceive()) {
    NotReady();
    return;
  }
  const uint64_t address = starts ? header.address : write_address_;
  const uint32_t rkey = starts ? header.rkey : write_rkey_;
  if (left > 0 || context_.env.Has(Defect::kEmptyKey)) {
    // The whole rest is checked, so a WRITE that leaves its region changes nothing at all.
    std::byte* to =
        context_.env.memory.Resolve(rkey, address, left, context_.pd, IBV_ACCESS_REMOTE_WRITE);
    if (to == nullptr) {
      if (has_receive_) FailReceive(IBV_WC_LOC_ACCESS_ERR);
      Refuse(kNakRemoteAccess, IBV_EVENT_QP_ACCESS_ERR);
      return;
    }
    StoreWrite(to, rkey, address, payload, ends);
  }
  if (starts) write_total_ = header.dma_length;
  write_address_ = address + bytes;
  write_rkey_ = rkey;
  write_left_ = left - bytes;
  open_ = ends ? Open::kNone : Open::kWrite;
  Accept(header, ends, 1);
  if (immediate) {
    CompleteWrite(header, true);
  } else if (ends && !info.Is(kOpImm) && context_.env.Has(Defect::kWriteTakesReceive))
      [[unlikely]] {
    // Without a receive it goes on: only this one promise is broken.
    if (TakeReceive()) CompleteWrite(header, false);
  }
}

void Responder::StoreWrite(std::byte* to, uint32_t rkey, uint64_t address,
                           std::span<const std::byte> payload, bool ends) {
  if (payload.empty()) return;
  const uint32_t bytes = Kept(rkey, address, static_cast<uint32_t>(payload.size()));
  if (!ends || context_.env.data_filter == nullptr) [[likely]] {
    DmaCopy(to, payload.data(), bytes);
    return;
  }
  const SpoiledData data(*context_.env.data_filter, payload);
  if (!data.skip()) DmaCopy(to, data.bytes().data(), bytes);
  if (data.write_past()) {
    WritePast(context_.env.memory, rkey, address + payload.size(), context_.pd);
  }
}

void Responder::CompleteWrite(const Header& header, bool immediate) {
  ibv_wc wc = {};
  wc.status = IBV_WC_SUCCESS;
  wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  wc.byte_len = write_total_;
  wc.src_qp = context_.dest_qpn;
  if (immediate) {
    wc.imm_data = header.immediate;
    wc.wc_flags = IBV_WC_WITH_IMM;
  }
  CompleteReceive(wc, header.solicited);
}

void Responder::ExecuteRead(const Header& header) {
  if (responses_ == kMaxResponses) return;  // as if lost: the peer has more open than it may
  if ((context_.access & IBV_ACCESS_REMOTE_READ) == 0 || context_.max_dest_rd_atomic == 0 ||
      header.dma_length > context_.env.options.max_message_bytes) {
    Refuse(kNakInvalidRequest, IBV_EVENT_QP_REQ_ERR);
    return;
  }
  if ((header.dma_length > 0 || context_.env.Has(Defect::kEmptyKey)) &&
      context_.env.memory.Resolve(header.rkey, header.address, header.dma_length, context_.pd,
                                  IBV_ACCESS_REMOTE_READ) == nullptr) {
    Refuse(kNakRemoteAccess, IBV_EVENT_QP_ACCESS_ERR);
    return;
  }
  QueueResponse({.psn = header.psn,
                 .rkey = header.rkey,
                 .address = header.address,
                 .length = header.dma_length});
  const uint32_t psns = PsnsOf(header.dma_length, context_.mtu);
  had_response_ = true;
  last_response_psn_ = PsnAdd(header.psn, psns - 1);
  Accept(header, true, psns, /*answered=*/true);
}

void Responder::ExecuteAtomic(const Header& header) {
  if (responses_ == kMaxResponses) return;
  if ((context_.access & IBV_ACCESS_REMOTE_ATOMIC) == 0 || context_.max_dest_rd_atomic == 0 ||
      header.address % sizeof(uint64_t) != 0) {
    Refuse(kNakInvalidRequest, IBV_EVENT_QP_REQ_ERR);
    return;
  }
  std::byte* at = context_.env.memory.Resolve(header.rkey, header.address, sizeof(uint64_t),
                                              context_.pd, IBV_ACCESS_REMOTE_ATOMIC);
  if (at == nullptr) {
    Refuse(kNakRemoteAccess, IBV_EVENT_QP_ACCESS_ERR);
    return;
  }
  const uint64_t original = Operate(header, at);
  atomics_[next_atomic_++ % kAtomicsKept] = {
      .valid = true, .psn = header.psn, .original = original};
  QueueResponse({.atomic = true, .psn = header.psn, .original = original});
  had_response_ = true;
  last_response_psn_ = header.psn;
  Accept(header, true, 1, /*answered=*/true);
}

uint64_t Responder::Operate(const Header& header, std::byte* at) {
  if (Kept(header.rkey, header.address, sizeof(uint64_t)) < sizeof(uint64_t)) return 0;
  if (context_.env.Has(Defect::kLazyAtomic)) return DmaFetchAdd(at, 0);
  return header.opcode == Opcode::kFetchAdd ? DmaFetchAdd(at, header.swap_add)
                                            : DmaCompareSwap(at, header.compare, header.swap_add);
}

void Responder::Vanish() {
  if (has_receive_) {
    has_receive_ = false;
    ++*queue_.released();  // no completion will free its slot
  }
  while (!shared_ && !queue_.empty()) {
    queue_.Pop(receive_);
    ++*queue_.released();
  }
}

void Responder::Flush(bool silent) {
  if (context_.env.Has(Defect::kNoFlush)) Vanish();
  if (has_receive_) {
    // A program that broke the rules in the middle of a message: rxe 6.1 says so in its receive.
    const bool own_error =
        context_.env.rxe() && nak_pending_ && nak_syndrome_ == kNakInvalidRequest;
    FailReceive(own_error ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_WR_FLUSH_ERR);
  }
  if (!shared_) {
    while (!queue_.empty()) {
      queue_.Pop(receive_);
      FailReceive(IBV_WC_WR_FLUSH_ERR);
    }
  }
  open_ = Open::kNone;
  if (unasked_ != 0 && !nak_pending_) QueueAck(unasked_psn_);  // no Tick comes any more
  if (silent) {
    responses_ = 0;
    ack_pending_ = nak_pending_ = false;
  }
}

}  // namespace verbscope::soft
