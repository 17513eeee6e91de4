// Sending: which packet comes next, whether it may go, and what it carries.
#include "transports/soft/engine/requester.h"

#include <algorithm>

#include "transports/soft/engine/dma.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft {
namespace {

// An ACK is asked for at the end of a message (AsksForAck has the exceptions), and inside a long
// one this often.
constexpr uint32_t kPacketsPerAckRequest = 32;
// With a shorter ACK timeout every message asks, even if the peer would acknowledge it anyway: that
// may take the time in which a sleeping device looks around.
constexpr uint64_t kShortestUnaskedTimeoutNs = 30'000'000;
// PSNs in flight stay far below half the number space, where old and new could be confused.
constexpr uint32_t kMaxPsnsInFlight = 1U << 22;

Opcode DataOpcode(ibv_wr_opcode opcode, bool first, bool last) {
  switch (opcode) {
    case IBV_WR_SEND:
      if (first) return last ? Opcode::kSendOnly : Opcode::kSendFirst;
      return last ? Opcode::kSendLast : Opcode::kSendMiddle;
    case IBV_WR_SEND_WITH_IMM:
      if (first) return last ? Opcode::kSendOnlyImm : Opcode::kSendFirst;
      return last ? Opcode::kSendLastImm : Opcode::kSendMiddle;
    case IBV_WR_SEND_WITH_INV:
      if (first) return last ? Opcode::kSendOnlyInvalidate : Opcode::kSendFirst;
      return last ? Opcode::kSendLastInvalidate : Opcode::kSendMiddle;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      if (first) return last ? Opcode::kWriteOnlyImm : Opcode::kWriteFirst;
      return last ? Opcode::kWriteLastImm : Opcode::kWriteMiddle;
    default:
      if (first) return last ? Opcode::kWriteOnly : Opcode::kWriteFirst;
      return last ? Opcode::kWriteLast : Opcode::kWriteMiddle;
  }
}

}  // namespace

bool Requester::Pump() {
  while (queue_.next != queue_.tail) {
    SendRequest& request = queue_.at(queue_.next);
    if (Blocked(request)) return false;
    switch (SendPacket(request)) {
      case Sent::kYes:
        break;
      case Sent::kLinkFull:
        return true;
      case Sent::kBlocked:
        return false;
    }
  }
  return false;
}

bool Requester::Blocked(const SendRequest& request) {
  if (context_.state != IBV_QPS_RTS) {
    // In SQD what has begun is finished, repeated if need be, and nothing else is begun
    // (IBTA 10.3.1).
    const bool begun = next_packet_ > 0 || static_cast<int32_t>(next_ - sent_) < 0;
    if (context_.state != IBV_QPS_SQD || !begun) return true;
  }
  if (rnr_waiting_ || InFlight() >= context_.env.options.window_packets) return true;
  if (next_packet_ > 0) return false;
  if (request.fence && rd_outstanding_ > 0) return true;
  if (request.HasResponse() && request.local_error == IBV_WC_SUCCESS) {
    if (rd_outstanding_ >= context_.max_rd_atomic) return true;
    if (request.first_psn + request.psns - una_ > kMaxPsnsInFlight && request.first_psn != una_) {
      return true;
    }
  }
  return false;
}

Requester::Sent Requester::SendPacket(SendRequest& request) {
  if (request.local_error != IBV_WC_SUCCESS) [[unlikely]] {
    LocalError(request, request.local_error);
    return Sent::kBlocked;
  }
  if (request.length == 0 && context_.env.Has(Defect::kEmptyKey) &&
      !LocalKeysHold(queue_.next, request)) [[unlikely]] {
    LocalError(request, IBV_WC_LOC_PROT_ERR);
    return Sent::kBlocked;
  }
  if (request.IsRead()) return SendRead(request);
  if (request.IsAtomic()) return SendAtomic(request);
  return SendData(request);
}

// A request that cannot be sent for a reason of this side ends when its turn comes: after
// everything before it.
void Requester::LocalError(SendRequest& request, ibv_wc_status status) {
  request.local_error = status;
  if (queue_.head == queue_.next) Fail(status);
}

Requester::Sent Requester::SendData(SendRequest& request) {
  const uint32_t mtu = context_.mtu;
  const uint32_t offset = next_packet_ * mtu;
  const uint32_t bytes = std::min(mtu, request.length - offset);
  const bool first = next_packet_ == 0;
  const bool last = offset + bytes == request.length;
  Pieces pieces;
  if (first && !last && !LocalKeysHold(queue_.next, request)) [[unlikely]] {
    LocalError(request, UnreadableStatus(queue_.next, request));
    return Sent::kBlocked;
  }
  std::optional<size_t> count = Gather(queue_.next, request, offset, bytes, pieces);
  if (!count) [[unlikely]] {
    LocalError(request, UnreadableStatus(queue_.next, request));
    return Sent::kBlocked;
  }
  if (context_.env.Has(Defect::kCopyAtPost) && bytes > 0) [[unlikely]] {
    pieces.spans[0] = sent_bytes_.Of(next_, una_, {pieces.spans, *count});
    count = 1;
  }
  Header header;
  header.opcode = DataOpcode(request.opcode, first, last);
  header.dest_qpn = context_.dest_qpn;
  header.psn = next_ & kPsnMask;
  header.pad = static_cast<uint8_t>(-bytes & 3);
  header.ack_request = AsksForAck(request, last);
  header.address = request.remote_address;
  header.rkey = request.rkey;
  header.dma_length = request.length;
  if (last) {
    const bool wakes = request.opcode != IBV_WR_RDMA_WRITE;
    header.solicited = request.solicited && wakes;
    header.immediate = request.immediate;
    header.invalidate_rkey = request.immediate;
  }
  if (!context_.Send(header, {pieces.spans, *count})) return Sent::kLinkFull;
  since_ack_request_ = header.ack_request ? 0 : since_ack_request_ + 1;
  AfterPacket(1, last);
  return Sent::kYes;
}

bool Requester::AsksForAck(const SendRequest& request, bool last) const {
  if (since_ack_request_ + 1 >= kPacketsPerAckRequest ||
      InFlight() + 1 >= context_.env.options.window_packets) {
    return true;
  }
  if (!last || !context_.acks_unasked) return last;
  // Somebody waits for it, or it is a repetition.
  if (request.signalled || static_cast<int32_t>(next_ - sent_) < 0) return true;
  return context_.ack_timeout_ns != 0 && context_.ack_timeout_ns < kShortestUnaskedTimeoutNs;
}

Requester::Sent Requester::SendRead(SendRequest& request) {
  const uint32_t offset = next_packet_ * context_.mtu;
  Header header;
  header.opcode = Opcode::kReadRequest;
  header.dest_qpn = context_.dest_qpn;
  header.psn = next_ & kPsnMask;
  header.ack_request = true;
  header.address = request.remote_address + offset;
  header.rkey = request.rkey;
  header.dma_length = request.length - offset;
  if (!context_.Send(header, {})) return Sent::kLinkFull;
  const uint32_t taken = request.psns - next_packet_;
  read_extra_ += taken - 1;
  ++rd_outstanding_;
  AfterPacket(taken, true);
  return Sent::kYes;
}

Requester::Sent Requester::SendAtomic(SendRequest& request) {
  Header header;
  header.opcode =
      request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP ? Opcode::kCompareSwap : Opcode::kFetchAdd;
  header.dest_qpn = context_.dest_qpn;
  header.psn = next_ & kPsnMask;
  header.ack_request = true;
  header.address = request.remote_address;
  header.rkey = request.rkey;
  header.swap_add = request.swap_add;
  header.compare = request.compare;
  if (!context_.Send(header, {})) return Sent::kLinkFull;
  ++rd_outstanding_;
  AfterPacket(1, true);
  return Sent::kYes;
}

void Requester::AfterPacket(uint32_t psns_taken, bool message_done) {
  next_ += psns_taken;
  if (static_cast<int32_t>(next_ - sent_) > 0) sent_ = next_;
  if (ack_deadline_ == 0) ack_timer_stale_ = true;
  if (message_done) {
    ++queue_.next;
    next_packet_ = 0;
    if (context_.env.Has(Defect::kEarlyCompletion)) [[unlikely]]
      CompleteEarly();
  } else {
    next_packet_ += psns_taken;
  }
}

void Requester::CompleteEarly() {
  for (uint32_t index = queue_.head; index != queue_.next; ++index) {
    SendRequest& request = queue_.at(index);
    if (request.HasResponse()) return;  // and what is behind it completes behind it
    if (request.reported) continue;
    request.reported = true;
    Report(request, IBV_WC_SUCCESS, 0);
  }
}

bool Requester::LocalKeysHold(uint32_t index, const SendRequest& request) {
  if (request.is_inline) return true;
  const bool always = context_.env.Has(Defect::kEmptyKey);
  const ibv_sge* sges = queue_.sges(index);
  for (uint32_t i = 0; i < request.sges; ++i) {
    if ((sges[i].length != 0 || always) &&
        context_.env.memory.Resolve(sges[i].lkey, sges[i].addr, sges[i].length, context_.pd, 0) ==
            nullptr) {
      return false;
    }
  }
  return true;
}

ibv_wc_status Requester::UnreadableStatus(uint32_t index, const SendRequest& request) {
  if (!context_.env.rxe()) return IBV_WC_LOC_PROT_ERR;
  const ibv_sge* sges = queue_.sges(index);
  for (uint32_t i = 0; i < request.sges; ++i) {
    if (sges[i].length == 0) continue;
    const MemoryRegion* region = context_.env.memory.Find(sges[i].lkey);
    if (region == nullptr || region->pd != context_.pd) return IBV_WC_LOC_QP_OP_ERR;
  }
  return IBV_WC_LOC_PROT_ERR;
}

std::optional<size_t> Requester::Gather(uint32_t index, const SendRequest& request, uint32_t offset,
                                        uint32_t bytes, Pieces& pieces) {
  if (bytes == 0) return 0;
  if (request.is_inline) {
    if (request.sges != 0) [[unlikely]]
      TakeInlineAgain(index, request);
    pieces.spans[0] = {queue_.inline_data(index, request.length) + offset, bytes};
    return 1;
  }
  if (request.sges != 1) return GatherMany(index, offset, bytes, pieces);
  const ibv_sge& sge = *queue_.sges(index);
  const std::byte* from =
      context_.env.memory.Resolve(sge.lkey, sge.addr + offset, bytes, context_.pd, 0);
  if (from == nullptr) [[unlikely]]
    return std::nullopt;
  pieces.spans[0] = {from, bytes};
  return 1;
}

void Requester::TakeInlineAgain(uint32_t index, const SendRequest& request) {
  const ibv_sge* sges = queue_.sges(index);
  std::byte* to = queue_.inline_data(index, request.length);
  for (uint32_t i = 0; i < request.sges; ++i) {
    // Verbs carries addresses as integers. NOLINTNEXTLINE(performance-no-int-to-ptr)
    DmaCopyIfThere(to, reinterpret_cast<const void*>(static_cast<uintptr_t>(sges[i].addr)),
                   sges[i].length);
    to += sges[i].length;
  }
}

std::optional<size_t> Requester::GatherMany(uint32_t index, uint32_t offset, uint32_t bytes,
                                            Pieces& pieces) {
  const ibv_sge* sge = queue_.sges(index);
  size_t count = 0;
  while (bytes > 0) {
    if (offset >= sge->length) {
      offset -= sge->length;
      ++sge;
      continue;
    }
    const uint32_t part = std::min(bytes, sge->length - offset);
    const std::byte* from =
        context_.env.memory.Resolve(sge->lkey, sge->addr + offset, part, context_.pd, 0);
    if (from == nullptr) [[unlikely]]
      return std::nullopt;
    pieces.spans[count++] = {from, part};
    bytes -= part;
    offset = 0;
    ++sge;
  }
  return count;
}

}  // namespace verbscope::soft
