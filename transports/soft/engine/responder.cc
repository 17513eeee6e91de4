// Which packets are executed, and what becomes of the others.
#include "transports/soft/engine/responder.h"

namespace verbscope::soft {

void Responder::Start(uint32_t psn) {
  expected_psn_ = psn & kPsnMask;
  msn_ = 0;
  nak_sent_ = ack_pending_ = nak_pending_ = has_receive_ = had_response_ = false;
  open_ = Open::kNone;
  responses_ = response_head_ = next_atomic_ = unasked_ = 0;
  atomics_.fill({});
}

void Responder::Reset() {
  if (has_receive_) ++*queue_.released();  // no completion will free its slot in an SRQ
  Start(0);
}

void Responder::Receive(const Header& header, std::span<const std::byte> payload) {
  const int32_t distance = PsnDiff(header.psn, expected_psn_);
  if (distance != 0) [[unlikely]] {
    if (distance > 0) {
      OutOfSequence(header.psn);
    } else {
      Duplicate(header);
    }
    return;
  }
  const OpcodeInfo& info = Info(header.opcode);
  if (!InSequence(info) || !LengthHolds(header, info, payload.size())) [[unlikely]] {
    Refuse(kNakInvalidRequest, IBV_EVENT_QP_REQ_ERR);
    return;
  }
  if (info.Is(kOpSend)) {
    ExecuteSend(header, info, payload);
  } else if (info.Is(kOpWrite)) {
    ExecuteWrite(header, info, payload);
  } else if (info.Is(kOpRead)) {
    ExecuteRead(header);
  } else {
    ExecuteAtomic(header);
  }
}

bool Responder::InSequence(const OpcodeInfo& info) const {
  if (info.Is(kOpStarts)) return open_ == Open::kNone;
  return info.Is(kOpSend) ? open_ == Open::kSend : open_ == Open::kWrite;
}

bool Responder::LengthHolds(const Header& header, const OpcodeInfo& info, size_t payload) const {
  // rxe 6.1 does not compare a SEND with the path MTU.
  if (context_.env.rxe() && info.Is(kOpSend)) return true;
  const auto bytes = static_cast<uint32_t>(payload);
  if (!PayloadFits(info.payload, bytes, context_.mtu)) return false;
  return header.pad == (-bytes & 3U);
}

void Responder::OutOfSequence(uint32_t psn) {
  ++context_.env.counters.out_of_seq_request;
  if (!nak_sent_ || PsnDiff(psn, dropped_psn_) > 0) dropped_psn_ = psn;
  if (nak_sent_) return;
  nak_sent_ = true;
  QueueNak(kNakSequence);
}

void Responder::Duplicate(const Header& header) {
  ++context_.env.counters.duplicate_request;
  if (header.opcode == Opcode::kReadRequest) {
    DuplicateRead(header);
    return;
  }
  if (Info(header.opcode).Is(kOpAtomic)) {
    DuplicateAtomic(header);
    return;
  }
  // The newest PSN that can be acknowledged: not beyond a READ or atomic, whose own answer says so.
  const bool response_since = had_response_ && PsnDiff(last_response_psn_, header.psn) > 0;
  QueueAck(response_since ? header.psn : (expected_psn_ - 1) & kPsnMask);
}

void Responder::DuplicateRead(const Header& header) {
  // May be the tail of an earlier READ. Everything is checked again; an error is no reason to
  // answer.
  const uint32_t psns = PsnsOf(header.dma_length, context_.mtu);
  if (psns > kPsnMask / 2 || PsnDiff(PsnAdd(header.psn, psns), expected_psn_) > 0) return;
  if ((context_.access & IBV_ACCESS_REMOTE_READ) == 0) return;
  if (header.dma_length > context_.env.options.max_message_bytes) return;
  if (header.dma_length > 0 &&
      context_.env.memory.Resolve(header.rkey, header.address, header.dma_length, context_.pd,
                                  IBV_ACCESS_REMOTE_READ) == nullptr) {
    return;
  }
  if (StillOwed(header.psn)) return;
  QueueResponse({.psn = header.psn,
                 .rkey = header.rkey,
                 .address = header.address,
                 .length = header.dma_length});
}

void Responder::DuplicateAtomic(const Header& header) {
  // The newest first: an entry from before the PSNs wrapped may bear the same number.
  for (uint32_t age = 1; age <= kAtomicsKept; ++age) {
    const KeptAtomic& kept = atomics_[(next_atomic_ - age) % kAtomicsKept];
    if (!kept.valid || kept.psn != header.psn) continue;
    if (StillOwed(header.psn)) return;
    QueueResponse({.atomic = true, .psn = header.psn, .original = kept.original});
    return;
  }
}

}  // namespace verbscope::soft
