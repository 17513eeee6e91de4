// Responses, retries and time; and how requests complete.
#include <algorithm>
#include <cstring>

#include "transports/soft/engine/dma.h"
#include "transports/soft/engine/rc_timers.h"
#include "transports/soft/engine/requester.h"
#include "transports/soft/engine/spoiled_data.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft {
namespace {

// "For ever" for both retry counts of rxe, and for the RNR retry count by the specification.
constexpr uint8_t kRetryForever = 7;

ibv_wc_opcode CompletionOpcode(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_WC_RDMA_WRITE;
    case IBV_WR_RDMA_READ:
      return IBV_WC_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_WC_COMP_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_WC_FETCH_ADD;
    default:
      return IBV_WC_SEND;
  }
}

ibv_wc_status StatusOfNak(uint8_t syndrome) {
  switch (syndrome) {
    case kNakInvalidRequest:
      return IBV_WC_REM_INV_REQ_ERR;
    case kNakRemoteAccess:
      return IBV_WC_REM_ACCESS_ERR;
    default:
      return IBV_WC_REM_OP_ERR;
  }
}

// Signed distance of two unmasked PSNs.
int32_t Distance(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b); }

}  // namespace

void Requester::OnResponse(const Header& header, std::span<const std::byte> payload) {
  Counters& counters = context_.env.counters;
  const uint32_t psn = una_ + static_cast<uint32_t>(PsnDiff(header.psn, una_ & kPsnMask));
  // Older than anything unanswered, or never sent: stale and ghost responses change nothing.
  if (Distance(psn, una_) < 0 || Distance(psn, sent_) >= 0) [[unlikely]] {
    ++counters.unexpected_response;
    return;
  }
  switch (header.opcode) {
    case Opcode::kAck:
      OnAck(header, psn);
      return;
    case Opcode::kAtomicAck:
      OnAtomicAck(header, psn);
      return;
    default:
      OnReadResponse(header, psn, payload);
      return;
  }
}

void Requester::OnAck(const Header& header, uint32_t psn) {
  Counters& counters = context_.env.counters;
  switch (header.syndrome >> 5) {
    case 0:
      if (!Acknowledge(psn + 1)) ResponseMissing();
      return;
    case 1: {
      if (!Acknowledge(psn)) {
        ResponseMissing();
        return;
      }
      if (rnr_waiting_) {  // a duplicate of the NAK that is being waited out
        ++counters.unexpected_response;
        return;
      }
      ++counters.rcvd_rnr_err;
      // The peer is there: the count of what it does not answer starts again. rxe follows its RNR
      // NAK with a sequence NAK for the packet behind, which would use that count up.
      retry_left_ = context_.retry_cnt;
      if (context_.rnr_retry != kRetryForever) {
        if (rnr_left_ == 0) {
          ++counters.retry_rnr_exceeded_err;
          Fail(IBV_WC_RNR_RETRY_EXC_ERR, header.syndrome);
          return;
        }
        --rnr_left_;
      }
      GoBack();
      rnr_waiting_ = rnr_start_ = true;
      rnr_wait_ns_ = kRnrTimerNs[header.syndrome & 0x1f];
      context_.env.timer_urgent = true;
      return;
    }
    case 3:
      if (!Acknowledge(psn)) {
        ResponseMissing();
        return;
      }
      OnNak(header.syndrome, psn);
      return;
    default:
      ++counters.unexpected_response;
      return;
  }
}

void Requester::OnNak(uint8_t syndrome, uint32_t psn) {
  if (syndrome != kNakSequence) {
    // The request that holds this PSN failed there; everything before it has completed.
    if (queue_.empty() || Distance(psn, una_) != 0) {
      ++context_.env.counters.unexpected_response;
      return;
    }
    Fail(StatusOfNak(syndrome), syndrome);
    return;
  }
  ++context_.env.counters.rcvd_seq_err;
  // Nothing has been sent again since the last go-back: the NAK is about what was sent before it.
  if (next_ == una_) return;
  if (TakeRetry()) GoBack();
}

bool Requester::Acknowledge(uint32_t limit) {
  bool moved = false;
  while (Distance(limit, una_) > 0 && !queue_.empty()) {
    const SendRequest& request = queue_.at(queue_.head);
    if (request.HasResponse()) {
      if (moved) Progress();
      return false;
    }
    const uint32_t end = request.first_psn + request.psns;
    moved = true;
    if (Distance(limit, end) < 0) {
      una_ = limit;
      break;
    }
    una_ = end;
    CompleteHead(IBV_WC_SUCCESS);
  }
  if (moved) Progress();
  return true;
}

bool Requester::AcknowledgeBefore(uint32_t psn) {
  // SENDs and WRITEs in front of the request that holds `psn`.
  while (!queue_.empty()) {
    const SendRequest& request = queue_.at(queue_.head);
    const uint32_t end = request.first_psn + request.psns;
    if (Distance(psn, end) < 0) return true;
    if (!Acknowledge(end)) return false;
  }
  return true;
}

void Requester::OnReadResponse(const Header& header, uint32_t psn,
                               std::span<const std::byte> payload) {
  if (!AcknowledgeBefore(psn)) {
    ResponseMissing();
    return;
  }
  const SendRequest& request = queue_.at(queue_.head);
  if (queue_.empty() || !request.IsRead()) {
    Fail(IBV_WC_BAD_RESP_ERR);
    return;
  }
  // The first packet of a READ may not have been reached by una_ if SENDs before it just completed;
  // from here una_ lies inside the READ.
  if (psn != una_) {
    ResponseMissing();
    return;
  }
  const uint32_t offset = (psn - request.first_psn) * context_.mtu;
  const uint32_t left = request.length - offset;
  const bool last = left <= context_.mtu;
  // A responder may resume with First or with Middle, and end with Last or Only.
  const bool ends =
      header.opcode == Opcode::kReadResponseLast || header.opcode == Opcode::kReadResponseOnly;
  if (ends != last || payload.size() != std::min(left, context_.mtu)) {
    Fail(IBV_WC_BAD_RESP_ERR);
    return;
  }
  const bool spoils = last && context_.env.data_filter != nullptr;
  if (!(spoils ? StoreSpoiled(request, offset, payload)
               : StoreResponse(request, offset, payload))) {
    Fail(IBV_WC_LOC_PROT_ERR);
    return;
  }
  if (!last && queue_.head != queue_.next) --read_extra_;
  ++una_;
  if (last) CompleteHead(IBV_WC_SUCCESS);
  Progress();
}

void Requester::OnAtomicAck(const Header& header, uint32_t psn) {
  if (!AcknowledgeBefore(psn)) {
    ResponseMissing();
    return;
  }
  const SendRequest& request = queue_.at(queue_.head);
  if (queue_.empty() || !request.IsAtomic()) {
    Fail(IBV_WC_BAD_RESP_ERR);
    return;
  }
  if (!StoreResponse(request, 0, std::as_bytes(std::span(&header.original, 1)))) {
    Fail(IBV_WC_LOC_PROT_ERR);
    return;
  }
  ++una_;
  CompleteHead(IBV_WC_SUCCESS);
  Progress();
}

bool Requester::StoreResponse(const SendRequest& request, uint32_t offset,
                              std::span<const std::byte> bytes) {
  const ibv_sge* sge = queue_.sges(queue_.head);
  for (uint32_t i = 0; i < request.sges && !bytes.empty(); ++i, ++sge) {
    if (offset >= sge->length) {
      offset -= sge->length;
      continue;
    }
    const size_t part = std::min<size_t>(bytes.size(), sge->length - offset);
    std::byte* to = context_.env.memory.Resolve(sge->lkey, sge->addr + offset, part, context_.pd,
                                                IBV_ACCESS_LOCAL_WRITE);
    if (to == nullptr) return false;
    DmaCopy(to, bytes.data(), part);
    bytes = bytes.subspan(part);
    offset = 0;
  }
  return bytes.empty();
}

bool Requester::StoreSpoiled(const SendRequest& request, uint32_t offset,
                             std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  const SpoiledData data(*context_.env.data_filter, bytes);
  if (data.skip()) return true;
  if (!StoreResponse(request, offset, data.bytes())) return false;
  if (data.write_past()) {
    const std::span sges(queue_.sges(queue_.head), request.sges);
    WritePast(context_.env.memory, sges, request.length, context_.pd);
  }
  return true;
}

void Requester::CompleteHead(ibv_wc_status status, uint8_t vendor_error) {
  const uint32_t index = queue_.head++;
  const SendRequest& request = queue_.at(index);
  if (Distance(queue_.next, queue_.head) < 0) {
    queue_.next = queue_.head;  // answered by a response to an earlier transmission
    next_packet_ = 0;
  } else if (request.HasResponse() && rd_outstanding_ > 0) {
    --rd_outstanding_;
  }
  if (!request.reported) [[likely]]
    Report(request, status, vendor_error);
}

void Requester::Report(const SendRequest& request, ibv_wc_status status, uint8_t vendor_error) {
  ++queue_.uncovered;
  if (status == IBV_WC_SUCCESS && !request.signalled) return;
  ibv_wc wc = {};
  wc.wr_id = request.wr_id;
  wc.status = status;
  wc.vendor_err = vendor_error;
  if (status == IBV_WC_SUCCESS) {
    wc.opcode = CompletionOpcode(request.opcode);
    wc.byte_len = request.length;
  }
  const uint32_t covered = queue_.uncovered;
  queue_.uncovered = 0;
  context_.Complete(CompletionKind::kSend, *context_.send_cq, wc, false, &queue_.released, covered);
}

void Requester::Fail(ibv_wc_status status, uint8_t vendor_error) {
  context_.broken = true;
  if (!queue_.empty()) CompleteHead(status, vendor_error);
}

void Requester::Progress() {
  ReloadRetries();
  response_gap_ = false;
  rnr_waiting_ = rnr_start_ = false;
  rnr_deadline_ = 0;
  ack_timer_stale_ = true;
  ack_deadline_ = 0;
  if (Distance(next_, una_) <= 0) ResyncNext();
}

void Requester::ResyncNext() {
  queue_.next = queue_.head;
  next_ = una_;
  next_packet_ = queue_.empty() ? 0 : una_ - queue_.at(queue_.head).first_psn;
  read_extra_ = rd_outstanding_ = 0;
}

void Requester::GoBack() {
  ++context_.env.counters.completer_retry_err;
  since_ack_request_ = 0;
  ack_timer_stale_ = true;  // the peer gets the whole time again
  ack_deadline_ = 0;
  ResyncNext();
}

bool Requester::TakeRetry() {
  if (context_.env.rxe() && context_.retry_cnt == kRetryForever) return true;
  if (retry_left_ == 0) {
    ++context_.env.counters.retry_exceeded_err;
    Fail(IBV_WC_RETRY_EXC_ERR);
    return false;
  }
  --retry_left_;
  return true;
}

void Requester::ResponseMissing() {
  ++context_.env.counters.implied_nak_seq_err;
  // Once per hole: what is still on its way behind it must not start another round.
  if (response_gap_) return;
  response_gap_ = true;
  if (TakeRetry()) GoBack();
}

void Requester::OnTimeout() {
  ++context_.env.counters.local_ack_timeout_err;
  response_gap_ = false;
  if (TakeRetry()) GoBack();
}

bool Requester::Tick(uint64_t now_ns) {
  bool may_send = false;
  if (rnr_start_) {
    rnr_start_ = false;
    rnr_deadline_ = now_ns + rnr_wait_ns_;
  }
  if (rnr_waiting_ && now_ns >= rnr_deadline_) {
    rnr_waiting_ = false;
    rnr_deadline_ = 0;
    ack_timer_stale_ = true;
    may_send = true;
  }
  if (rnr_waiting_ || sent_ == una_ || context_.ack_timeout_ns == 0) {
    ack_deadline_ = 0;
    ack_timer_stale_ = false;
  } else if (ack_timer_stale_ || ack_deadline_ == 0) {
    ack_timer_stale_ = false;
    ack_deadline_ = now_ns + context_.ack_timeout_ns;
  } else if (now_ns >= ack_deadline_) {
    ack_deadline_ = 0;
    ack_timer_stale_ = true;
    OnTimeout();
    may_send = true;
  }
  return may_send;
}

std::optional<uint64_t> Requester::NextTimer() const {
  if (rnr_start_) return 0;
  if (rnr_waiting_) return rnr_deadline_;
  if (sent_ == una_ || context_.ack_timeout_ns == 0) return std::nullopt;
  if (ack_timer_stale_ || ack_deadline_ == 0) return 0;
  return ack_deadline_;
}

}  // namespace verbscope::soft
