// What the responder owes, and how it leaves.
#include <algorithm>
#include <array>

#include "transports/soft/engine/queue_pair.h"
#include "transports/soft/engine/responder.h"

namespace verbscope::soft {

void Responder::QueueAck(uint32_t psn) {
  if (ack_pending_) {
    ++context_.env.counters.ack_deferred;
    if (PsnDiff(psn, ack_psn_) < 0) return;
  }
  ack_pending_ = true;
  ack_psn_ = psn;
}

void Responder::CountUnasked(uint32_t psn) {
  if (unasked_++ == 0) unasked_deadline_ = 0;
  unasked_psn_ = psn;
  if (unasked_ >= kUnaskedMessages) QueueAck(psn);
}

bool Responder::Tick(uint64_t now_ns) {
  if (unasked_ == 0) return false;
  if (unasked_deadline_ == 0) unasked_deadline_ = now_ns + kUnaskedNs;
  if (now_ns < unasked_deadline_) return false;
  QueueAck(unasked_psn_);
  return true;
}

std::optional<uint64_t> Responder::NextTimer() const {
  if (unasked_ == 0 || ack_pending_) return std::nullopt;
  return unasked_deadline_;
}

void Responder::QueueNak(uint8_t syndrome) {
  nak_pending_ = true;
  nak_syndrome_ = syndrome;
  nak_psn_ = expected_psn_;
}

void Responder::NakOvertaken() {
  if (nak_syndrome_ == kNakSequence && PsnDiff(dropped_psn_, expected_psn_) >= 0) {
    nak_psn_ = expected_psn_;  // there is still something missing, only less
    nak_sent_ = true;
  } else {
    nak_pending_ = false;
  }
}

void Responder::NotReady() {
  ++context_.env.counters.send_rnr_err;
  nak_sent_ = true;
  QueueNak(static_cast<uint8_t>(kSyndromeRnr + (context_.min_rnr_timer & 0x1f)));
}

void Responder::RefuseSilently(uint8_t syndrome) {
  Counters& counters = context_.env.counters;
  switch (syndrome) {
    case kNakRemoteAccess:
      ++counters.remote_access_err;
      break;
    case kNakInvalidRequest:
      ++counters.remote_invalid_req_err;
      break;
    default:
      ++counters.remote_op_err;
      break;
  }
  QueueNak(syndrome);
  context_.broken = true;
}

void Responder::Refuse(uint8_t syndrome, ibv_event_type event) {
  RefuseSilently(syndrome);
  if (!context_.env.rxe()) context_.env.events->OnQpEvent(event, context_.qp);
}

void Responder::QueueResponse(const Response& response) {
  if (responses_ == kMaxResponses) return;  // the peer repeats more than it may have open
  response_[(response_head_ + responses_) % kMaxResponses] = response;
  ++responses_;
}

bool Responder::StillOwed(uint32_t psn) {
  for (uint32_t i = 0; i < responses_; ++i) {
    Response& owed = response_[(response_head_ + i) % kMaxResponses];
    const int32_t packet = PsnDiff(psn, owed.psn);
    if (packet < 0) {
      // Answers from here on would only be taken for signs of a loss.
      responses_ = i;
      if (ack_pending_ && PsnDiff(ack_psn_, psn) >= 0) ack_pending_ = false;
      return false;
    }
    const auto packets = static_cast<uint32_t>(packet);
    if (packets >= PsnsOf(owed.length, context_.mtu)) continue;
    owed.sent = std::min(owed.sent, packets * context_.mtu);
    return true;
  }
  return false;
}

bool Responder::Pump() {
  while (responses_ > 0) {
    Response& response = response_[response_head_];
    if (!SendResponse(response)) return true;
    if (responses_ == 0) break;  // it failed and took the rest with it
    // It acknowledged what is before it, and nothing older may follow (IBTA 9.7.5.1).
    if (ack_pending_ && PsnDiff(ack_psn_, response.psn) < 0) ack_pending_ = false;
    SettleUnasked(response.psn);
    response_head_ = (response_head_ + 1) % kMaxResponses;
    --responses_;
  }
  if (nak_pending_) {
    if (!SendAck(nak_syndrome_, nak_psn_)) return true;
    nak_pending_ = ack_pending_ = false;
    SettleUnasked(nak_psn_);
  }
  if (ack_pending_) {
    if (!SendAck(kSyndromeAck, ack_psn_)) return true;
    ack_pending_ = false;
    SettleUnasked(ack_psn_);
  }
  return false;
}

bool Responder::SendAck(uint8_t syndrome, uint32_t psn) {
  Header header;
  header.opcode = Opcode::kAck;
  header.dest_qpn = context_.dest_qpn;
  header.psn = psn;
  header.syndrome = syndrome;
  header.msn = msn_;
  return context_.Send(header, {});
}

// False: the link is full.
bool Responder::SendResponse(Response& response) {
  Header header;
  header.dest_qpn = context_.dest_qpn;
  header.syndrome = kSyndromeAck;
  header.msn = msn_;
  if (response.atomic) {
    header.opcode = Opcode::kAtomicAck;
    header.psn = response.psn;
    header.original = response.original;
    return context_.Send(header, {});
  }
  const uint32_t mtu = context_.mtu;
  do {
    const uint32_t bytes = std::min(mtu, response.length - response.sent);
    const bool first = response.sent == 0;
    const bool last = response.sent + bytes == response.length;
    header.psn = PsnAdd(response.psn, response.sent / mtu);
    std::array<std::span<const std::byte>, 2> piece;
    size_t pieces = bytes > 0 ? 1 : 0;
    if (bytes > 0) {
      // Again for each packet: the region may have gone since the last one.
      const std::byte* from =
          context_.env.memory.Resolve(response.rkey, response.address + response.sent, bytes,
                                      context_.pd, IBV_ACCESS_REMOTE_READ);
      if (from == nullptr) {
        responses_ = 0;
        Refuse(kNakRemoteAccess, IBV_EVENT_QP_ACCESS_ERR);
        nak_psn_ = header.psn;
        return true;
      }
      piece[0] = {from, bytes};
      const uint32_t inside = Kept(response.rkey, response.address + response.sent, bytes);
      if (inside < bytes) [[unlikely]] {
        static constexpr std::array<std::byte, 64> kZeros = {};
        piece[0] = {from, inside};
        piece[1] = {kZeros.data(), bytes - inside};
        pieces = 2;
      }
    }
    if (first) {
      header.opcode = last ? Opcode::kReadResponseOnly : Opcode::kReadResponseFirst;
    } else {
      header.opcode = last ? Opcode::kReadResponseLast : Opcode::kReadResponseMiddle;
    }
    header.pad = static_cast<uint8_t>(-bytes & 3);
    if (!context_.Send(header, {piece.data(), pieces})) return false;
    response.sent += bytes;
  } while (response.sent < response.length);
  return true;
}

}  // namespace verbscope::soft
