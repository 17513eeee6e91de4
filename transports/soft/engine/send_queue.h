// The send queue of a QP: posted requests from the oldest incomplete one to the newest, with the
// PSNs they take. Storage only; the Requester decides what happens to them.
//
// Indices are free-running 32-bit counters; slot = index & mask. A slot is free again when a
// completion that covers it was polled (unsignalled requests are covered by the next signalled
// one), exactly as on hardware: a program that never signals fills its queue. With the device's
// lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SEND_QUEUE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SEND_QUEUE_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace verbscope::soft {

struct SendRequest {
  uint64_t wr_id;
  uint64_t remote_address;
  uint64_t compare;  // atomics
  uint64_t swap_add;
  uint32_t rkey;
  uint32_t length;     // bytes of all SGEs or of the inline data
  uint32_t first_psn;  // not masked to 24 bits: the requester counts on
  uint32_t psns;       // 1, or the packets a READ's response takes
  uint32_t immediate;  // network order; or the key to invalidate, host order
  uint32_t sges;
  ibv_wr_opcode opcode;
  ibv_wc_status local_error;  // found at posting: completes with it when its turn comes
  bool signalled;
  bool solicited;
  bool fence;
  bool is_inline;
  bool reported;  // has completed before it was answered: Defect::kEarlyCompletion

  bool IsRead() const { return opcode == IBV_WR_RDMA_READ; }
  bool IsAtomic() const {
    return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
  // Answered by data, not by an ACK.
  bool HasResponse() const { return IsRead() || IsAtomic(); }
};

class SendQueue {
 public:
  // `extra`: room for so many requests more, whose slots are free before they are done.
  SendQueue(uint32_t max_requests, uint32_t max_sge, uint32_t max_inline, uint32_t extra)
      : max_requests_(max_requests),
        max_sge_(max_sge),
        max_inline_(max_inline),
        inline_stride_((static_cast<size_t>(max_inline) + 63) / 64 * 64),
        mask_(std::bit_ceil(std::max(max_requests + extra, 1U)) - 1),
        requests_(mask_ + 1),
        sges_(static_cast<size_t>(mask_ + 1) * std::max(max_sge, 1U)),
        inline_(static_cast<size_t>(mask_ + 1) * inline_stride_) {}

  SendRequest& at(uint32_t index) { return requests_[index & mask_]; }
  ibv_sge* sges(uint32_t index) {
    return &sges_[static_cast<size_t>(index & mask_) * std::max(max_sge_, 1U)];
  }
  // Room for `bytes` of inline data. More than max_inline (Defect::kOverInline) lies apart.
  std::byte* inline_data(uint32_t index, uint32_t bytes) {
    if (bytes > max_inline_) [[unlikely]]
      return LongInline(index, bytes);
    return inline_.data() + (index & mask_) * inline_stride_;
  }

  bool full() const { return tail - released >= max_requests_; }
  uint32_t free_slots() const { return max_requests_ - (tail - released); }
  bool empty() const { return head == tail; }
  uint32_t max_requests() const { return max_requests_; }
  uint32_t max_sge() const { return max_sge_; }
  uint32_t max_inline() const { return max_inline_; }
  void Clear() { head = next = tail = released = uncovered = 0; }

  uint32_t head = 0;       // oldest incomplete request
  uint32_t next = 0;       // the one whose packets are sent next; head <= next <= tail
  uint32_t tail = 0;       // where the next post goes
  uint32_t released = 0;   // slots freed by polling
  uint32_t uncovered = 0;  // completed requests that no completion covers yet

 private:
  std::byte* LongInline(uint32_t index, uint32_t bytes) {
    long_inline_.resize(mask_ + 1);
    std::vector<std::byte>& data = long_inline_[index & mask_];
    if (data.size() < bytes) data.resize(bytes);
    return data.data();
  }

  uint32_t max_requests_;
  uint32_t max_sge_;
  uint32_t max_inline_;
  size_t inline_stride_;
  uint32_t mask_;
  std::vector<SendRequest> requests_;
  std::vector<ibv_sge> sges_;
  std::vector<std::byte> inline_;
  std::vector<std::vector<std::byte>> long_inline_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SEND_QUEUE_H_
