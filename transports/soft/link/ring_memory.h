// Where the memory of a ring comes from: the sender makes a sealed memfd, the receiver checks one
// that came from outside and finds room for it. Nothing has a name, so nothing is left behind.
//
// Threads: free functions any; RxWindow as its functions say.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_MEMORY_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_MEMORY_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/mapping.h"
#include "transports/soft/link/ring_layout.h"

namespace verbscope::soft {

struct RingMemory {
  FileDescriptor memfd;  // of no use to the sender once it was handed over
  Mapping mapping;       // RingHead and arena, writable
};

// A new ring; its head is in memory, the pages of the arena come when they are used.
// `arena_bytes`: kMinArenaBytes … kMaxArenaBytes, whole pages.
Expected<RingMemory> MakeRing(size_t arena_bytes);

// Twice the second level cache of this machine, within the limits above.
size_t DefaultArenaBytes();

// Whether `fd` is memory that can be mapped safely whatever its owner does: a memfd of ordinary
// pages, of the right size, sealed against shrinking and growing, and the seals sealed. Returns the
// size of its arena.
Expected<size_t> CheckRing(int fd);

// The arena of a checked ring, readable. Empty with errno set if it cannot be mapped.
Mapping MapArena(int fd, size_t arena_bytes);

// The heads of all rings that a device receives from, at addresses that stay readable while the
// window exists: Pending may look at a ring that is being taken away, and sees an empty one.
//
// Threads: Pending any; the others with the device's lock held.
class RxWindow {
 public:
  static constexpr uint32_t kRings = 256;

  // The addresses for a window; empty, with errno set, if there are none.
  static Mapping Reserve();
  explicit RxWindow(Mapping reserved) : memory_(std::move(reserved)) {}
  RxWindow(const RxWindow&) = delete;
  RxWindow& operator=(const RxWindow&) = delete;

  // Maps the head of a checked ring to a free place; the next packet expected is `first`. Nothing,
  // with errno set, if all places are taken or the map call fails.
  std::optional<uint32_t> Attach(int fd, uint32_t first = 0);
  void Detach(uint32_t place);

  RingHead& head(uint32_t place) const {
    return *reinterpret_cast<RingHead*>(memory_.data() + size_t{place} * sizeof(RingHead));
  }
  // The number of the next packet of a ring; written by whoever polls it.
  std::atomic<uint32_t>& next(uint32_t place) { return next_[place]; }

  // Whether a packet waits in any ring. Loads only.
  bool Pending() const {
    for (size_t i = 0; i < used_.size(); ++i) {
      uint64_t bits = used_[i].load(std::memory_order_acquire);
      for (; bits != 0; bits &= bits - 1) {
        if (Ready(static_cast<uint32_t>(i * 64) + static_cast<uint32_t>(std::countr_zero(bits)))) {
          return true;
        }
      }
    }
    return false;
  }
  // A place may be given back or taken anew meanwhile: then this reads a page of zeros or of
  // another ring, and whoever polls under the lock finds nothing. The thread sanitizer takes the
  // mapping of a page for a write to it, so it is not shown this load.
  __attribute__((no_sanitize("thread"))) bool Ready(uint32_t place) const {
    const uint32_t packet = next_[place].load(std::memory_order_relaxed);
    const Slot& slot = head(place).slots[packet % kRingSlots];
    const uint64_t control = __atomic_load_n(&slot.control, __ATOMIC_ACQUIRE);
    return static_cast<uint32_t>(control) == LapOf(packet);
  }

 private:
  // Puts zeros back; a place where that fails is not used again.
  void Clear(uint32_t place);

  Mapping memory_;
  std::array<std::atomic<uint64_t>, kRings / 64> used_ = {};  // places that hold a ring
  std::array<uint64_t, kRings / 64> lost_ = {};               // places that could not be cleared
  std::array<std::atomic<uint32_t>, kRings> next_ = {};
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_MEMORY_H_
