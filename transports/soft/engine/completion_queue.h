// A completion queue: a ring of work completions, the rule of when it raises an event, and what
// happens when it is full. Completions are never lost silently: the first one that does not fit
// puts the CQ into error for good (IBTA 11.6.3.1), which its owner hears as an asynchronous event.
//
// Used with the device's lock held, but Looks() may be called without it.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_COMPLETION_QUEUE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_COMPLETION_QUEUE_H_

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "transports/soft/engine/defects.h"

namespace verbscope::soft {

class CompletionQueue {
 public:
  // `capacity` entries exactly, at least 1: what ibv_create_cq was asked for.
  explicit CompletionQueue(uint32_t capacity, Defects defects = {});
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;
  virtual ~CompletionQueue() = default;

  enum class Pushed : uint8_t {
    kQuiet,    // stored
    kEvent,    // stored, and the armed condition is met: raise one event
    kOverrun,  // does not fit: the CQ has just gone into error
    kDead,     // was in error already
  };
  // `queue_slots`: polling this completion frees so many slots of its work queue, counted in
  // `*released` (which must live until the completion is polled or purged). The program sees the
  // qp_num of `wc` with the bits of `qp_num_xor` flipped.
  Pushed Push(const ibv_wc& wc, bool solicited, uint32_t* released, uint32_t queue_slots,
              uint32_t qp_num_xor = 0);

  // One completion outside of the queue, which waits to be pushed behind the next one
  // (CompletionFate::kHoldBehind). Not counted by size.
  struct Held {
    ibv_wc wc;
    bool solicited;
    uint32_t* released;  // as for Push
    uint32_t queue_slots;
    uint32_t qp_num_xor = 0;
  };
  bool holds() const { return held_.has_value(); }
  void Hold(const Held& completion) { held_ = completion; }
  std::optional<Held> TakeHeld() { return std::exchange(held_, std::nullopt); }

  // Moves up to `count` completions, oldest first. Returns how many.
  int Poll(int count, ibv_wc* out);
  uint32_t size() const { return tail_.load(std::memory_order_relaxed) - head_; }
  // Whether it may hold a completion. For a thread that wants to know if taking the lock is worth
  // it.
  bool Looks() const {
    return tail_.load(std::memory_order_relaxed) != seen_.load(std::memory_order_relaxed);
  }

  // ibv_req_notify_cq(3): one-shot; a stronger arming is never weakened by a later one. Completions
  // that are there already raise nothing.
  void Arm(bool solicited_only);
  enum class Armed : uint8_t { kNo, kSolicited, kAny };
  Armed armed() const { return armed_; }

  // ibv_modify_cq(3): an armed CQ raises its event only after `count` completions, or `period_us`
  // after the first. 0 or 1 count and 0 period: at once.
  void Moderate(uint16_t count, uint16_t period_us);
  // Virtual time for the period. True: raise one event now.
  bool Tick(uint64_t now_ns);
  std::optional<uint64_t> NextTimer() const;

  bool failed() const { return failed_; }
  // Takes completions again after an overrun, as if it had not been.
  void Revive() { failed_ = false; }
  uint32_t capacity() const { return capacity_; }
  // A new capacity, at least what is stored. False: too small.
  bool Resize(uint32_t capacity);
  // Forgets the completions of a QP that is reset or destroyed, also a held one; their slots are
  // free.
  void Purge(uint32_t qp_num);

 private:
  struct alignas(64) Entry {
    ibv_wc wc;
    uint32_t* released;
    uint32_t queue_slots;
    uint32_t qp_num;  // whatever wc says
  };
  static_assert(sizeof(Entry) == 64);

  bool EventDue(const ibv_wc& wc, bool solicited);

  const Defects defects_;
  uint32_t capacity_;
  uint32_t mask_;
  std::vector<Entry> entries_;
  uint32_t head_ = 0;
  std::atomic<uint32_t> tail_{0};
  std::atomic<uint32_t> seen_{0};  // head_, for Looks()
  Armed armed_ = Armed::kNo;
  bool failed_ = false;
  uint16_t moderation_count_ = 0;
  uint16_t moderation_period_us_ = 0;
  uint32_t moderated_ = 0;           // completions held back since the arming
  bool moderation_started_ = false;  // the period runs from the next Tick
  std::optional<uint64_t> moderation_deadline_;
  std::optional<Held> held_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_COMPLETION_QUEUE_H_
