#include "transports/soft/engine/completion_queue.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace verbscope::soft {

CompletionQueue::CompletionQueue(uint32_t capacity, Defects defects)
    : defects_(defects),
      capacity_(std::max(capacity, 1U)),
      mask_(std::bit_ceil(capacity_) - 1),
      entries_(mask_ + 1) {}

CompletionQueue::Pushed CompletionQueue::Push(const ibv_wc& wc, bool solicited, uint32_t* released,
                                              uint32_t queue_slots, uint32_t qp_num_xor) {
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  if (failed_ || tail - head_ == capacity_) [[unlikely]] {
    *released += queue_slots;  // nobody will ever poll it
    if (defects_.Has(Defect::kSilentOverrun)) return Pushed::kQuiet;
    return std::exchange(failed_, true) ? Pushed::kDead : Pushed::kOverrun;
  }
  Entry& entry = entries_[tail & mask_];
  entry.wc = wc;
  entry.wc.qp_num ^= qp_num_xor;
  entry.qp_num = wc.qp_num;
  entry.released = released;
  entry.queue_slots = queue_slots;
  tail_.store(tail + 1, std::memory_order_relaxed);
  if (armed_ == Armed::kNo) [[likely]]
    return Pushed::kQuiet;
  return EventDue(wc, solicited) ? Pushed::kEvent : Pushed::kQuiet;
}

bool CompletionQueue::EventDue(const ibv_wc& wc, bool solicited) {
  // An unsuccessful completion counts as solicited (IBTA 11.4.2.2).
  if (armed_ == Armed::kSolicited && !solicited && wc.status == IBV_WC_SUCCESS) return false;
  ++moderated_;
  const bool enough =
      moderation_count_ > 1 ? moderated_ >= moderation_count_ : moderation_period_us_ == 0;
  if (!enough && wc.status == IBV_WC_SUCCESS) {
    if (moderation_period_us_ > 0 && !moderation_deadline_) moderation_started_ = true;
    return false;
  }
  if (!defects_.Has(Defect::kStaysArmed)) armed_ = Armed::kNo;
  moderated_ = 0;
  moderation_started_ = false;
  moderation_deadline_.reset();
  return true;
}

int CompletionQueue::Poll(int count, ibv_wc* out) {
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  int taken = 0;
  while (taken < count && head_ != tail) {
    Entry& entry = entries_[head_ & mask_];
    out[taken++] = entry.wc;
    *entry.released += entry.queue_slots;
    ++head_;
  }
  if (taken > 0) seen_.store(head_, std::memory_order_relaxed);
  return taken;
}

void CompletionQueue::Arm(bool solicited_only) {
  if (armed_ != Armed::kAny) armed_ = solicited_only ? Armed::kSolicited : Armed::kAny;
}

void CompletionQueue::Moderate(uint16_t count, uint16_t period_us) {
  moderation_count_ = count;
  moderation_period_us_ = period_us;
  // What was held back by the old rule waits no longer than the new period.
  if (moderated_ > 0 && !moderation_deadline_) moderation_started_ = true;
}

bool CompletionQueue::Tick(uint64_t now_ns) {
  if (moderation_started_) {
    moderation_started_ = false;
    moderation_deadline_ = now_ns + uint64_t{moderation_period_us_} * 1000;
  }
  if (!moderation_deadline_ || now_ns < *moderation_deadline_) return false;
  moderation_deadline_.reset();
  moderated_ = 0;
  if (armed_ == Armed::kNo) return false;
  armed_ = Armed::kNo;
  return true;
}

std::optional<uint64_t> CompletionQueue::NextTimer() const {
  if (moderation_started_) return 0;
  return moderation_deadline_;
}

bool CompletionQueue::Resize(uint32_t capacity) {
  const uint32_t stored = size();
  if (capacity == 0 || capacity < stored) return false;
  const uint32_t mask = std::bit_ceil(capacity) - 1;
  std::vector<Entry> entries(mask + 1);
  for (uint32_t i = 0; i < stored; ++i) entries[i] = entries_[(head_ + i) & mask_];
  entries_.swap(entries);
  mask_ = mask;
  capacity_ = capacity;
  head_ = 0;
  tail_.store(stored, std::memory_order_relaxed);
  seen_.store(0, std::memory_order_relaxed);
  return true;
}

void CompletionQueue::Purge(uint32_t qp_num) {
  if (held_ && held_->wc.qp_num == qp_num) {
    *held_->released += held_->queue_slots;
    held_.reset();
  }
  const uint32_t tail = tail_.load(std::memory_order_relaxed);
  uint32_t kept = head_;
  for (uint32_t at = head_; at != tail; ++at) {
    const Entry& entry = entries_[at & mask_];
    if (entry.qp_num == qp_num) {
      *entry.released += entry.queue_slots;  // of an SRQ, which lives on
      continue;
    }
    if (kept != at) entries_[kept & mask_] = entries_[at & mask_];
    ++kept;
  }
  tail_.store(kept, std::memory_order_relaxed);
}

}  // namespace verbscope::soft
