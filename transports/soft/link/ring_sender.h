// The writing end of a ring: puts packets into slots and knows which of them the receiver has
// taken.
//
// It owns the mapping. Nothing is announced to a receiver that sleeps: the link does that for all
// rings at once, with the hints kept here of what was sent since it last did.
//
// Threads: with the device's lock held. Nothing allocates or waits; the first large packet asks the
// system for the pages of the arena.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_SENDER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_SENDER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "transports/soft/engine/dma.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/mapping.h"
#include "transports/soft/link/ring_layout.h"
#include "transports/soft/wire/header.h"
#include "transports/soft/wire/opcode.h"

namespace verbscope::soft {

// Of a packet as bytes, which can complete nothing. No row in kOpcodeTable.
inline constexpr Opcode kNoOpcode = static_cast<Opcode>(0xff);

// What is left to know of a packet that was sent, to wake who waits for it. Kept by the sender
// because the slot is in memory that the peer may change.
struct WakeHint {
  uint16_t arm_slot = 0;  // destination QPN modulo kArmSlots
  bool solicited = false;
  Opcode opcode = kNoOpcode;
};

class RingSender {
 public:
  enum class Result : uint8_t {
    kSent,
    kFull,      // no room now
    kTooLarge,  // never: more than kMaxCarriedBytes or kMaxRawBytes
  };

  // `memory`: a whole ring, fresh. `first`: the number of the first packet; not 0 in tests only.
  explicit RingSender(Mapping memory, uint32_t first = 0);

  // Whether one packet of any size has room.
  bool HasRoom() const {
    return sent_ - consumed_ < kRingSlots || sent_ - ReadConsumed() < kRingSlots;
  }
  Result Send(const Header& header, PayloadPieces pieces);
  Result SendRaw(std::span<const std::byte> packet);

  RingHead& head() const { return *head_; }
  // For who wants to unmap it later than this object goes; nothing may be sent any more.
  Mapping TakeMemory() { return std::move(memory_); }

  // The packets sent since Flushed was last called, at most a ring: [first, second). Those before
  // were consumed by a receiver that is awake.
  std::pair<uint32_t, uint32_t> Unflushed() const {
    return {sent_ - flushed_ > kRingSlots ? sent_ - kRingSlots : flushed_, sent_};
  }
  void Flushed() { flushed_ = sent_; }
  const WakeHint& hint(uint32_t packet) const { return hints_[packet % kRingSlots]; }

 private:
  // The receiver's count; the last known one if it is impossible.
  uint32_t ReadConsumed() const {
    const uint32_t now = std::atomic_ref(head_->consumed).load(std::memory_order_acquire);
    return now - consumed_ <= sent_ - consumed_ ? now : consumed_;
  }
  bool RefreshRoom() {
    consumed_ = ReadConsumed();
    return sent_ - consumed_ < kRingSlots;
  }
  // Where `bytes` of the next packet go in the arena; writes the offset into the slot.
  std::byte* TakeArena(Slot& slot, size_t bytes);
  static void CopyToSlot(Slot& slot, size_t header_bytes, PayloadPieces pieces, uint8_t pad);
  void PopulateArena();
  void Publish(Slot& slot, uint8_t flags, size_t header_bytes, size_t carried_bytes) {
    std::atomic_ref(slot.control)
        .store(MakeControl(sent_, flags, header_bytes, carried_bytes), std::memory_order_release);
    ++sent_;
  }

  // Of a slot's bytes, those in its first cache line.
  static constexpr size_t kFirstLine = 64 - sizeof(Slot::control);
  static_assert(kSlotOffsetAt + sizeof(uint64_t) <= kFirstLine);
  // Payload of at least this many bytes fills the rest of the first line, with any headers.
  static constexpr size_t kFixedCopy = 48;
  static_assert(kFixedCopy >= kFirstLine - kBthBytes);

  RingHead* head_;
  uint32_t sent_;
  uint32_t consumed_;
  uint32_t flushed_;
  bool populated_ = false;
  size_t arena_at_ = 0;
  Mapping memory_;
  std::array<WakeHint, kRingSlots> hints_ = {};
};

inline void CopyPieces(PayloadPieces pieces, uint8_t pad, std::byte* to) {
  for (const auto& piece : pieces) {
    if (piece.empty()) continue;  // its pointer may be null
    DmaCopyOut(to, piece.data(), piece.size());
    to += piece.size();
  }
  if (pad != 0) std::memset(to, 0, pad);
}

// The receiver looks at the first line of the slot all the time, and takes it away each time it has
// changed. So it is written last and in one go: payload that is longer goes to the other lines
// first.
inline void RingSender::CopyToSlot(Slot& slot, size_t header_bytes, PayloadPieces pieces,
                                   uint8_t pad) {
  std::byte* to = slot.bytes + header_bytes;
  if (pieces.size() != 1 || pieces[0].size() < kFixedCopy) {
    CopyPieces(pieces, pad, to);
    return;
  }
  const std::span<const std::byte> piece = pieces[0];
  const size_t first = kFirstLine - header_bytes;
  DmaCopy(to + first, piece.data() + first, piece.size() - first);
  if (pad != 0) std::memset(to + piece.size(), 0, pad);
  DmaCopy(to, piece.data(), kFixedCopy);
}

inline RingSender::Result RingSender::Send(const Header& header, PayloadPieces pieces) {
  if (sent_ - consumed_ >= kRingSlots && !RefreshRoom()) [[unlikely]] {
    return Result::kFull;
  }
  size_t carried = header.pad;
  for (const auto& piece : pieces) carried += piece.size();
  if (carried > kMaxCarriedBytes) [[unlikely]] {
    return Result::kTooLarge;
  }
  Slot& slot = head_->slots[sent_ % kRingSlots];
  hints_[sent_ % kRingSlots] = {.arm_slot = static_cast<uint16_t>(header.dest_qpn % kArmSlots),
                                .solicited = header.solicited,
                                .opcode = header.opcode};
  const size_t header_bytes = kBthBytes + Info(header.opcode).extension_bytes;
  uint8_t flags = 0;
  if (header_bytes + carried <= kSlotRoom) [[likely]] {
    CopyToSlot(slot, header_bytes, pieces, header.pad);
  } else {
    CopyPieces(pieces, header.pad, TakeArena(slot, carried));
    flags = kSlotArena;
  }
  Encode(header, slot.bytes);
  Publish(slot, flags, header_bytes, carried);
  return Result::kSent;
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_RING_SENDER_H_
