// Posted receives in order: the receive queue of a QP, or an SRQ that many QPs draw from.
//
// A slot is taken by a post and free again when the completion of that receive was polled, as on
// hardware, so posting ahead of polling is refused where a real queue would be full. Used with the
// device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RECEIVE_QUEUE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RECEIVE_QUEUE_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <vector>

namespace verbscope::soft {

inline constexpr uint32_t kMaxSge = 16;

struct ReceiveRequest {
  uint64_t wr_id = 0;
  uint64_t capacity = 0;  // bytes, sum of the SGEs
  uint32_t sges = 0;
  std::array<ibv_sge, kMaxSge> sge;  // the first `sges` are set
};

class ReceiveQueue {
 public:
  // `max_sge` up to kMaxSge. max_requests 0: nothing can ever be posted.
  ReceiveQueue(uint32_t max_requests, uint32_t max_sge);
  ReceiveQueue(const ReceiveQueue&) = delete;
  ReceiveQueue& operator=(const ReceiveQueue&) = delete;
  virtual ~ReceiveQueue() = default;

  // 0; EINVAL: too many SGEs; ENOMEM: full. The SGE list is copied.
  int Post(const ibv_recv_wr& wr);
  bool empty() const { return popped_ == posted_; }
  uint32_t size() const { return posted_ - popped_; }
  // Takes the oldest. The queue must not be empty.
  void Pop(ReceiveRequest& out);
  // Everything forgotten, no completions (QP to RESET).
  void Clear();
  // Polling a completion adds the slots it frees here.
  uint32_t* released() { return &released_; }

  // The protection domain that the memory of its receives must be of (an SRQ has its own).
  void SetPd(uint32_t pd) { pd_ = pd; }
  uint32_t pd() const { return pd_; }

  uint32_t max_requests() const { return max_requests_; }
  uint32_t max_sge() const { return max_sge_; }
  // False: more are posted now than the new maximum.
  bool Resize(uint32_t max_requests);

  // SRQ: one event when fewer than `limit` are left; 0 is unarmed (ibv_modify_srq(3)).
  void SetLimit(uint32_t limit) { limit_ = limit; }
  uint32_t limit() const { return limit_; }
  // True once after Pop went below the limit.
  bool LimitReached();

 private:
  struct Slot {
    uint64_t wr_id;
    uint64_t capacity;
    uint32_t sges;
  };

  uint32_t pd_ = 0;
  uint32_t max_requests_;
  uint32_t max_sge_;
  uint32_t mask_;
  std::vector<Slot> slots_;
  std::vector<ibv_sge> sges_;
  uint32_t posted_ = 0;
  uint32_t popped_ = 0;
  uint32_t released_ = 0;
  uint32_t limit_ = 0;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_RECEIVE_QUEUE_H_
