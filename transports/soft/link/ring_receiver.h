// The reading end of a ring: takes packets out of slots and hands them on, decoded.
//
// The memory belongs to the peer and may hold anything at any time. Control word and headers are
// copied once and judged as copies; lengths and offsets are checked; what is wrong is counted and
// skipped. Only the content of a payload may still change while it is read, which hurts nobody but
// the peer. This side writes `consumed`, `attention` and `arms`, nothing else.
//
// It owns its place in the window and the mapping of the arena. Threads: with the device's lock
// held. Nothing allocates or waits; the first large packet asks the system for the arena's pages.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_RECEIVER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_RECEIVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/mapping.h"
#include "transports/soft/link/ring_layout.h"
#include "transports/soft/link/ring_memory.h"
#include "transports/soft/wire/frame.h"

namespace verbscope::soft {

class RingReceiver {
 public:
  // `place`: of an attached ring in `window`, which must outlive this. `flow`: how the sender
  // addresses its packets.
  RingReceiver(RxWindow& window, uint32_t place, Mapping arena, PathId path, const Flow& flow)
      : head_(window.head(place)),
        next_(window.next(place)),
        path_(path),
        window_(window),
        place_(place),
        arena_(std::move(arena)),
        flow_(flow) {}
  RingReceiver(const RingReceiver&) = delete;
  RingReceiver& operator=(const RingReceiver&) = delete;
  ~RingReceiver() { window_.Detach(place_); }

  // Delivers at most `budget` packets, refused ones included. Returns how many it took.
  size_t Poll(PacketReceiver& receiver, size_t budget, Counters& counters);
  bool Ready() const { return window_.Ready(place_); }

  RingHead& head() const { return head_; }
  PathId path() const { return path_; }
  const Flow& flow() const { return flow_; }

  // The peer has gone: what is in the ring is still delivered, then the ring can be taken away.
  void Close() {
    closed_ = true;
    last_ = next_.load(std::memory_order_relaxed) + kRingSlots;
  }
  bool Closed() const { return closed_; }
  // Nothing left, or more than an honest sender can have left.
  bool Drained() const { return !Ready() || next_.load(std::memory_order_relaxed) == last_; }
  // For who wants to unmap it later than this object goes; nothing may be polled any more.
  Mapping TakeArena() { return std::move(arena_); }

 private:
  void PrefetchPayload(uint32_t packet) const;
  void Deliver(Slot& slot, uint64_t control, PacketReceiver& receiver, Counters& counters);
  void DeliverRaw(std::span<const std::byte> packet, PacketReceiver& receiver, Counters& counters);
  // Where the payload is; false: nowhere in the arena.
  bool InArena(const Slot& slot, size_t bytes, const std::byte*& at);

  RingHead& head_;
  std::atomic<uint32_t>& next_;
  const PathId path_;
  RxWindow& window_;
  const uint32_t place_;
  Mapping arena_;
  const Flow flow_;
  bool populated_ = false;
  bool closed_ = false;
  uint32_t last_ = 0;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_RECEIVER_H_
