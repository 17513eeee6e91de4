#include "transports/soft/engine/receive_queue.h"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace verbscope::soft {

ReceiveQueue::ReceiveQueue(uint32_t max_requests, uint32_t max_sge)
    : max_requests_(max_requests),
      max_sge_(std::min(max_sge, kMaxSge)),
      mask_(std::bit_ceil(std::max(max_requests, 1U)) - 1),
      slots_(mask_ + 1),
      sges_(static_cast<size_t>(mask_ + 1) * std::max(max_sge_, 1U)) {}

int ReceiveQueue::Post(const ibv_recv_wr& wr) {
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > max_sge_) return EINVAL;
  if (posted_ - released_ >= max_requests_) return ENOMEM;
  Slot& slot = slots_[posted_ & mask_];
  slot.wr_id = wr.wr_id;
  slot.sges = static_cast<uint32_t>(wr.num_sge);
  slot.capacity = 0;
  ibv_sge* sges = &sges_[static_cast<size_t>(posted_ & mask_) * std::max(max_sge_, 1U)];
  for (uint32_t i = 0; i < slot.sges; ++i) {
    sges[i] = wr.sg_list[i];
    slot.capacity += wr.sg_list[i].length;
  }
  ++posted_;
  return 0;
}

void ReceiveQueue::Pop(ReceiveRequest& out) {
  const Slot& slot = slots_[popped_ & mask_];
  const ibv_sge* sges = &sges_[static_cast<size_t>(popped_ & mask_) * std::max(max_sge_, 1U)];
  out.wr_id = slot.wr_id;
  out.capacity = slot.capacity;
  out.sges = slot.sges;
  std::copy_n(sges, slot.sges, out.sge.begin());
  ++popped_;
}

void ReceiveQueue::Clear() { posted_ = popped_ = released_ = 0; }

bool ReceiveQueue::Resize(uint32_t max_requests) {
  const uint32_t occupied = posted_ - released_;
  if (max_requests < occupied) return false;
  ReceiveQueue larger(max_requests, max_sge_);
  // Waiting requests keep their order; those taken but not polled only count.
  const size_t stride = std::max(max_sge_, 1U);
  const uint32_t taken = popped_ - released_;
  for (uint32_t i = 0; i < size(); ++i) {
    const size_t from = (popped_ + i) & mask_;
    const size_t to = (taken + i) & larger.mask_;
    larger.slots_[to] = slots_[from];
    std::copy_n(&sges_[from * stride], stride, &larger.sges_[to * stride]);
  }
  slots_.swap(larger.slots_);
  sges_.swap(larger.sges_);
  mask_ = larger.mask_;
  max_requests_ = max_requests;
  posted_ = occupied;
  popped_ = taken;
  released_ = 0;
  return true;
}

bool ReceiveQueue::LimitReached() {
  if (limit_ == 0 || size() >= limit_) return false;
  limit_ = 0;
  return true;
}

}  // namespace verbscope::soft
