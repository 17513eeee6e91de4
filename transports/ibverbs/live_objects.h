// The verbs objects of one device that are alive, and what is owed on them: answers "what still
// holds this?" when a destruction fails with EBUSY, and "how many events of this CQ were taken and
// not acknowledged?" before a destruction that would wait for them for ever.
//
// Knows the objects by address and reads their public fields; owns none. Thread safe.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_LIVE_OBJECTS_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_LIVE_OBJECTS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace verbscope {

// Completion events of one CQ. The library's own counter of acknowledged ones is not used: it is
// changed under the CQ's lock.
struct EventCount {
  uint64_t taken = 0;
  uint64_t acknowledged = 0;

  uint64_t owed() const { return taken > acknowledged ? taken - acknowledged : 0; }
};

class LiveObjects {
 public:
  void Add(ibv_mr* mr);
  void Add(ibv_qp* qp);
  // With the count of before, when a destruction failed.
  void Add(ibv_cq* cq, EventCount events = {});

  // Removed before the destruction, because the address may be reused the moment it succeeds.
  void Remove(ibv_mr* mr);
  void Remove(ibv_qp* qp);
  EventCount Remove(ibv_cq* cq);

  void EventTaken(ibv_cq* cq);
  void EventsAcknowledged(ibv_cq* cq, unsigned count);

  // "QP 0x11, QP 0x12 and 3 more", "MR lkey 0x1234"; empty when nothing known holds it.
  std::string HoldersOf(const ibv_pd* pd) const;
  std::string HoldersOf(const ibv_cq* cq) const;
  std::string HoldersOf(const ibv_comp_channel* channel) const;

  // Objects of all kinds known; 0 after a clean tear-down.
  size_t size() const;

 private:
  mutable std::mutex mutex_;
  std::unordered_set<ibv_mr*> mrs_;
  std::unordered_set<ibv_qp*> qps_;
  std::unordered_map<ibv_cq*, EventCount> cqs_;
};

// Names for messages.
std::string Describe(const ibv_pd* pd);
std::string Describe(const ibv_mr* mr);
std::string Describe(const ibv_comp_channel* channel);
std::string Describe(const ibv_cq* cq);
std::string Describe(const ibv_qp* qp);
std::string Describe(const ibv_srq* srq);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_LIVE_OBJECTS_H_
