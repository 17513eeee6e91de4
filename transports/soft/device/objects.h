// The verbs objects of a soft device. Each derives from the public struct it is handed out as, so
// the inline verbs and this code see the same address. Internal to this package; everything is
// changed with the device's lock held, except what says otherwise.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECTS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECTS_H_

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/base/file_descriptor.h"
#include "transports/soft/device/link_use.h"
#include "transports/soft/engine/completion_queue.h"
#include "transports/soft/engine/queue_pair.h"
#include "transports/soft/engine/receive_queue.h"

namespace verbscope::soft {

class SoftCore;
struct SoftCq;
struct SoftSrq;

struct SoftPd : ibv_pd {
  SoftPd() : ibv_pd{} {}
  uint32_t users = 0;      // MRs, QPs and SRQs
  bool abandoned = false;  // the program was told that it is destroyed (Defect::kBusyDestroy)
};

// What destruction needs is kept beside the public struct, which the program can change.
struct SoftMr : ibv_mr {
  SoftMr() : ibv_mr{} {}
  SoftPd* owner = nullptr;
  uint32_t key = 0;
  uint64_t bytes = 0;
};

struct SoftChannel : ibv_comp_channel {
  SoftChannel() : ibv_comp_channel{} {}
  uint32_t handle = 0;         // the public struct has none
  FileDescriptor event_fd;     // `fd` of the public struct; peers write to it too
  uint32_t link_id = 0;        // its name in the link
  std::deque<SoftCq*> events;  // raised and not taken yet
  std::vector<SoftCq*> cqs;    // those that raise their events here
  // GetCqEvent is at work: events need not be written to the descriptor.
  bool reading = false;
  bool abandoned = false;
};

// The engine's completion queue, which knows the verbs object around it.
class OwnedCompletionQueue final : public CompletionQueue {
 public:
  OwnedCompletionQueue(uint32_t capacity, Defects defects, SoftCq& cq)
      : CompletionQueue(capacity, defects), owner(cq) {}
  SoftCq& owner;
};

class OwnedReceiveQueue final : public ReceiveQueue {
 public:
  OwnedReceiveQueue(uint32_t max_requests, uint32_t max_sge, SoftSrq& srq)
      : ReceiveQueue(max_requests, max_sge), owner(srq) {}
  SoftSrq& owner;
};

struct SoftCq : ibv_cq_ex {
  SoftCq(uint32_t capacity, Defects defects) : ibv_cq_ex{}, queue(capacity, defects, *this) {}

  SoftCore* core = nullptr;
  OwnedCompletionQueue queue;
  // QPs whose receives or sends complete here; a QP may be in both.
  std::vector<QueuePair*> receive_qps;
  std::vector<QueuePair*> send_qps;
  bool abandoned = false;
  uint32_t events_taken = 0;  // by GetCqEvent; comp_events_completed counts those acknowledged
  // Empty polls since the last look at clock and timers. Any thread: a lost count does not matter.
  std::atomic<uint32_t> empty_polls{0};

  // ibv_start_poll … ibv_end_poll: the batch under way.
  ibv_wc current = {};
  // Event timing hooks.
  std::optional<uint64_t> late_event_ns;  // an event to raise at this time
  uint32_t shown = 0;  // between_poll_and_arm: of the oldest completions, those that polls find
};

struct SoftSrq : ibv_srq {
  SoftSrq(uint32_t max_wr, uint32_t max_sge) : ibv_srq{}, queue(max_wr, max_sge, *this) {}
  SoftCore* core = nullptr;
  SoftPd* owner = nullptr;
  OwnedReceiveQueue queue;
  uint32_t users = 0;  // QPs
};

struct SoftQp : ibv_qp_ex {
  SoftQp() : ibv_qp_ex{} {}
  SoftCore* core = nullptr;
  QueuePair* pair = nullptr;  // owned by the engine
  SoftPd* owner = nullptr;
  SoftSrq* shared_receives = nullptr;
  std::vector<std::byte> peer_blob;  // of the peer's device, from AcceptPeerBlob
  std::optional<LinkUse> link_use;

  // ibv_wr_start … ibv_wr_complete: requests being built, and where their SGEs and inline data are.
  std::vector<ibv_send_wr> building;
  std::vector<std::vector<ibv_sge>> building_sges;
  std::vector<std::vector<std::byte>> building_inline;
  std::vector<ibv_sge> building_inline_sges;
  int building_error = 0;
  size_t built = 0;
};

inline SoftCq& Of(ibv_cq* cq) { return *static_cast<SoftCq*>(reinterpret_cast<ibv_cq_ex*>(cq)); }
inline SoftCq& Of(ibv_cq_ex* cq) { return *static_cast<SoftCq*>(cq); }
inline SoftQp& Of(ibv_qp* qp) { return *static_cast<SoftQp*>(reinterpret_cast<ibv_qp_ex*>(qp)); }
inline SoftQp& Of(ibv_qp_ex* qp) { return *static_cast<SoftQp*>(qp); }
inline SoftPd& Of(ibv_pd* pd) { return *static_cast<SoftPd*>(pd); }
inline SoftMr& Of(ibv_mr* mr) { return *static_cast<SoftMr*>(mr); }
inline SoftSrq& Of(ibv_srq* srq) { return *static_cast<SoftSrq*>(srq); }
inline SoftChannel& Of(ibv_comp_channel* channel) { return *static_cast<SoftChannel*>(channel); }
inline SoftCq& OwnerOf(CompletionQueue& queue) {
  return static_cast<OwnedCompletionQueue&>(queue).owner;
}

inline uint32_t HandleOf(const SoftPd& pd) { return pd.handle; }
inline uint32_t HandleOf(const SoftMr& mr) { return mr.handle; }
inline uint32_t HandleOf(const SoftChannel& channel) { return channel.handle; }
inline uint32_t HandleOf(const SoftCq& cq) { return cq.handle; }
inline uint32_t HandleOf(const SoftSrq& srq) { return srq.handle; }
inline uint32_t HandleOf(const SoftQp& qp) { return qp.qp_base.handle; }

inline ibv_cq* Public(SoftCq& cq) {
  return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(&cq));
}
inline ibv_qp* Public(SoftQp& qp) { return &qp.qp_base; }

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_OBJECTS_H_
