// Taking posted work, and the ways a QP starts and ends it.
#include <cerrno>
#include <utility>

#include "transports/soft/engine/dma.h"
#include "transports/soft/engine/requester.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft {
namespace {

bool Supported(ibv_wr_opcode opcode) {
  switch (opcode) {
    case IBV_WR_SEND:
    case IBV_WR_SEND_WITH_IMM:
    case IBV_WR_SEND_WITH_INV:
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return true;
    default:
      return false;
  }
}

// rxe's library looks at the address of an Atomic when it is posted; others leave it to the peer.
bool IsOddAtomic(const ibv_send_wr& wr) {
  const bool atomic =
      wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  return atomic && wr.wr.atomic.remote_addr % sizeof(uint64_t) != 0;
}

void CopyRemote(const ibv_send_wr& wr, SendRequest& request) {
  if (request.IsAtomic()) {
    request.remote_address = wr.wr.atomic.remote_addr;
    request.rkey = wr.wr.atomic.rkey;
    const bool swap = wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    request.swap_add = swap ? wr.wr.atomic.swap : wr.wr.atomic.compare_add;
    request.compare = swap ? wr.wr.atomic.compare_add : 0;
    return;
  }
  request.remote_address = wr.wr.rdma.remote_addr;
  request.rkey = wr.wr.rdma.rkey;
}

}  // namespace

// The data is taken now; the program may reuse its buffer when the post returns.
void Requester::TakeInline(const ibv_send_wr& wr, uint32_t length) {
  std::byte* to = queue_.inline_data(queue_.tail, length);
  for (int i = 0; i < wr.num_sge; ++i) {
    if (wr.sg_list[i].length == 0) continue;
    // Verbs carries addresses as integers. NOLINTNEXTLINE(performance-no-int-to-ptr)
    DmaCopy(to, reinterpret_cast<const void*>(static_cast<uintptr_t>(wr.sg_list[i].addr)),
            wr.sg_list[i].length);
    to += wr.sg_list[i].length;
  }
}

int Requester::Post(const ibv_send_wr& wr) {
  if (!Supported(wr.opcode) || wr.num_sge < 0 ||
      static_cast<uint32_t>(wr.num_sge) > queue_.max_sge()) {
    return EINVAL;
  }
  if (context_.env.rxe() && IsOddAtomic(wr)) return EINVAL;
  if (queue_.full()) return ENOMEM;
  SendRequest& request = queue_.at(queue_.tail);
  request.opcode = wr.opcode;
  request.is_inline = (wr.send_flags & IBV_SEND_INLINE) != 0;
  if (request.is_inline && request.HasResponse()) return EINVAL;
  const auto sges = static_cast<uint32_t>(wr.num_sge);
  uint64_t length = 0;
  for (uint32_t i = 0; i < sges; ++i) length += wr.sg_list[i].length;
  if (request.is_inline) {
    if (length > max_inline()) return EINVAL;
    TakeInline(wr, static_cast<uint32_t>(length));
    request.sges = 0;
  }
  if (!request.is_inline || context_.env.Has(Defect::kInlineByReference)) {
    ibv_sge* to = queue_.sges(queue_.tail);
    for (uint32_t i = 0; i < sges; ++i) to[i] = wr.sg_list[i];
    request.sges = sges;
  }
  request.wr_id = wr.wr_id;
  request.signalled = signal_all_ || (wr.send_flags & IBV_SEND_SIGNALED) != 0;
  request.solicited = (wr.send_flags & IBV_SEND_SOLICITED) != 0;
  request.fence = (wr.send_flags & IBV_SEND_FENCE) != 0 && !context_.env.Has(Defect::kNoFence);
  request.reported = false;
  request.immediate = wr.opcode == IBV_WR_SEND_WITH_INV ? wr.invalidate_rkey : wr.imm_data;
  CopyRemote(wr, request);
  const bool too_long = length > context_.env.options.max_message_bytes;
  request.length = too_long ? 0 : static_cast<uint32_t>(length);
  const bool bad_length = too_long || (request.IsAtomic() && length != sizeof(uint64_t));
  request.local_error = bad_length ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
  // With no READ or atomic allowed its turn would never come (rxe 6.1 does wait for ever).
  if (request.HasResponse() && context_.max_rd_atomic == 0 && !context_.env.rxe()) {
    request.local_error = IBV_WC_LOC_QP_OP_ERR;
  }
  request.first_psn = post_psn_;
  request.psns = request.IsAtomic() || request.length <= context_.mtu
                     ? 1
                     : (request.length + context_.mtu - 1) / context_.mtu;
  post_psn_ += request.psns;
  ++queue_.tail;
  return 0;
}

void Requester::Start(uint32_t psn) {
  post_psn_ = una_ = next_ = sent_ = psn;
  next_packet_ = read_extra_ = rd_outstanding_ = since_ack_request_ = 0;
  response_gap_ = rnr_waiting_ = rnr_start_ = ack_timer_stale_ = false;
  rnr_deadline_ = ack_deadline_ = 0;
  sent_bytes_.Forget();
  ReloadRetries();
}

void Requester::ReloadRetries() {
  retry_left_ = context_.retry_cnt;
  rnr_left_ = context_.rnr_retry;
}

void Requester::Flush() {
  const bool vanishes = context_.env.Has(Defect::kNoFlush);
  while (!queue_.empty()) vanishes ? Vanish() : CompleteHead(IBV_WC_WR_FLUSH_ERR);
  una_ = next_ = sent_ = post_psn_;
  next_packet_ = 0;
  rnr_waiting_ = rnr_start_ = false;
}

void Requester::Vanish() {
  if (!queue_.at(queue_.head++).reported) ++queue_.uncovered;
  queue_.next = queue_.head;
  queue_.released += std::exchange(queue_.uncovered, 0);  // no completion will free its slot
}

void Requester::Reset() {
  queue_.Clear();
  Start(0);
}

}  // namespace verbscope::soft
