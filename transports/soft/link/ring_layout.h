// The shared memory of one ring: packets from one device (the sender, who makes the ring) to
// another (the receiver). 64 slots that stay in the first level cache, small packets whole in their
// slot, large payload in an arena larger than the second level cache.
//
// Who writes which word, and with what ordering:
//
//   slot, arena   sender. Contents plainly, then Slot::control with one release store; the receiver
//                 acquires it. A slot is free again when `consumed` has passed it.
//   consumed      receiver, release, each quarter of a ring, after it has read the slots; the
//   sender
//                 acquires it before it overwrites them.
//   attention     both, by read-modify-write only. Bit 0, the bell: set by the receiver before it
//                 sleeps, cleared by the receiver when it is awake or by the sender that rings. The
//                 rest counts arm words that are set: raised by the receiver before it sets one,
//                 lowered by whoever cleared one.
//   arms          receiver sets, both clear, by exchange only: one exchange finds a value, so one
//                 event is raised per arming.
//
// Why no wake-up is lost (Dekker). The receiver sets the bell or an arm, fences (seq_cst), and
// looks at the slots once more before it sleeps. The sender publishes its packets, fences
// (seq_cst), and looks at `attention`. One of the two fences is first, so the receiver sees the
// packet or the sender sees the wish. While nobody sleeps or waits for an event, attention is 0 and
// stays in the sender's cache: the price is the fence and one load per batch.
//
// Nothing here is trusted by either side: the receiver checks every length and offset, the sender
// clamps `consumed`. A lying peer loses packets and events of its own, nothing else.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_LAYOUT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_LAYOUT_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "transports/soft/wire/header.h"

namespace verbscope::soft {

inline constexpr uint64_t kRingMagic = 0x676e6972'6c6d7376;  // "vsmlring"
// Of the ring, of the messages about it, and of the blob. One number: all change together.
inline constexpr uint16_t kMemoryLinkVersion = 2;

inline constexpr uint32_t kRingSlots = 64;
inline constexpr size_t kSlotBytes = 256;
inline constexpr uint32_t kConsumedStep = kRingSlots / 4;
inline constexpr uint32_t kArmSlots = 1024;

inline constexpr size_t kMaxPayloadBytes = 4096;  // the largest path MTU
// Payload and pad, or a raw packet: headers, payload, pad, ICRC.
inline constexpr size_t kMaxCarriedBytes = kMaxPayloadBytes + 3;
inline constexpr size_t kMaxRawBytes = kMaxHeaderBytes + kMaxCarriedBytes + kIcrcBytes;

// Bits of the control word, from bit 0: lap (32), flags (8), header bytes (8), carried bytes (16).
// The lap counts from 1, so a slot that was never written is never valid.
enum SlotFlag : uint8_t {
  kSlotArena = 1 << 0,  // the carried bytes are in the arena, at the offset in kSlotOffsetAt
  kSlotRaw = 1 << 1,    // no header bytes; carried is a whole packet, BTH … ICRC
};

struct alignas(kSlotBytes) Slot {
  uint64_t control;
  // Encoded headers, then payload and pad.
  std::byte bytes[kSlotBytes - sizeof(uint64_t)];
};
static_assert(sizeof(Slot) == kSlotBytes);
inline constexpr size_t kSlotRoom = sizeof(Slot::bytes);
inline constexpr size_t kSlotOffsetAt = kMaxHeaderBytes;
static_assert((offsetof(Slot, bytes) + kSlotOffsetAt) % alignof(uint64_t) == 0);

inline constexpr uint32_t LapOf(uint32_t packet) { return packet / kRingSlots + 1; }

inline constexpr uint64_t MakeControl(uint32_t packet, uint8_t flags, size_t header_bytes,
                                      size_t carried_bytes) {
  return uint64_t{LapOf(packet)} | uint64_t{flags} << 32 | uint64_t{header_bytes} << 40 |
         uint64_t{carried_bytes} << 48;
}
static_assert(kMaxRawBytes <= UINT16_MAX);

inline constexpr uint32_t kAttentionBell = 1;
inline constexpr uint32_t kAttentionArm = 2;  // one arm word that is set

// An arm word: 0, or the channel's number plus 1 in the low bits.
inline constexpr uint32_t kArmSolicitedOnly = uint32_t{1} << 31;

// Everything but the arena, which follows. The lines that are written by different sides, or at
// different rates, are two cache lines apart: the hardware fetches neighbours.
struct RingHead {
  // Written before the ring is handed over.
  uint64_t magic;
  uint32_t version;
  uint32_t slot_count;
  alignas(128) uint32_t consumed;  // packets, modulo 2^32
  alignas(128) uint32_t attention;
  alignas(4096) uint32_t arms[2][kArmSlots];  // [ArmSide][QPN modulo kArmSlots]
  alignas(4096) Slot slots[kRingSlots];
};
static_assert(sizeof(RingHead) == 28672);
static_assert(offsetof(RingHead, arms) == 4096 && offsetof(RingHead, slots) == 12288);

inline constexpr size_t kArenaAlign = 64;
inline constexpr size_t kMinArenaBytes = size_t{4} << 20;
inline constexpr size_t kMaxArenaBytes = size_t{256} << 20;
// The arena is used in the order of the packets. All that can be in flight, and what is left unused
// where it wraps, is less than the arena: the write position never overtakes the receiver.
inline constexpr size_t kMaxArenaChunk =
    (kMaxRawBytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
static_assert((kRingSlots + 2) * kMaxArenaChunk <= kMinArenaBytes);

static_assert(std::atomic_ref<uint64_t>::is_always_lock_free);
static_assert(std::atomic_ref<uint32_t>::is_always_lock_free);
static_assert(std::endian::native == std::endian::little);

// The fence of both sides.
inline void FullFence() {
#if defined(__SANITIZE_THREAD__)
  // The thread sanitizer knows no fences; on its machines a read-modify-write is one.
  static std::atomic<uint32_t> word = 0;
  word.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_LAYOUT_H_
