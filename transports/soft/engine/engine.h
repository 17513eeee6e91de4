// The RC engine of one device: all its QPs, and the order in which they get to send.
//
// A pure state machine. In: packets (Receive), posted work (through QueuePair), time (Tick). Out:
// packets (PacketSink), completions (CompletionQueue), events (EventSink), the next moment at which
// time matters (NextTimer). No I/O, no threads, no clock: two engines joined by a test's channel
// run in virtual time. Everything is called with the owner's lock held.
//
// How to drive it: after posting call Transmit; after delivering a batch of packets call Transmit;
// call Tick now and then, at once when timer_urgent() says so.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENGINE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENGINE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "transports/soft/engine/environment.h"
#include "transports/soft/engine/queue_pair.h"

namespace verbscope::soft {

class Engine : public PacketReceiver {
 public:
  // The low bits of a QP number are its place in the device's table, so no two live QPs share them.
  static constexpr uint32_t kMaxQps = 1024;

  Engine(const EngineOptions& options, PacketSink& sink, EventSink& events)
      : env_(options, sink, events), next_qpn_(options.first_qpn) {}

  // A QP in RESET. `options.qpn` must be free in the table (see FreeQpn).
  QueuePair& CreateQp(const QpOptions& options);
  // Forgets the QP and its completions.
  void DestroyQp(QueuePair& qp);
  QueuePair* Find(uint32_t qpn) const {
    QueuePair* qp = qps_[qpn % kMaxQps].get();
    return qp != nullptr && qp->qpn() == qpn ? qp : nullptr;
  }
  // A number that no live QP has and that was not used recently; nullopt when kMaxQps are alive.
  std::optional<uint32_t> FreeQpn();

  void Receive(PathId path, const Header& header, std::span<const std::byte> payload) override;
  // `qp` has something to send.
  void Touch(QueuePair& qp) {
    if (qp.listed) return;
    qp.listed = true;
    active_.push_back(&qp);
  }
  // Lets every QP that has something to send do so. True: some wait for room in the link.
  bool Transmit();
  bool wants_to_transmit() const { return !active_.empty(); }

  void Tick(uint64_t now_ns);
  // Absolute, in the time of Tick; 0: at once. nullopt: time does not matter now.
  std::optional<uint64_t> NextTimer() const;
  bool timer_urgent() const { return env_.timer_urgent; }

  // All QPs that use the CQ go to ERR with QP_FATAL: it has overrun.
  void FailQpsOf(const CompletionQueue& cq);

  Environment& env() { return env_; }
  Counters& counters() { return env_.counters; }
  MemoryTable& memory() { return env_.memory; }
  uint32_t live_qps() const { return static_cast<uint32_t>(live_.size()); }

 private:
  Environment env_;
  std::array<std::unique_ptr<QueuePair>, kMaxQps> qps_;
  std::vector<QueuePair*> live_;
  std::vector<QueuePair*> active_;
  std::vector<QueuePair*> transmitting_;
  uint32_t next_qpn_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_ENGINE_H_
