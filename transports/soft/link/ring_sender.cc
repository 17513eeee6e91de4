#include "transports/soft/link/ring_sender.h"

#include <sys/mman.h>

namespace verbscope::soft {

RingSender::RingSender(Mapping memory, uint32_t first)
    : head_(reinterpret_cast<RingHead*>(memory.data())),
      sent_(first),
      consumed_(first),
      flushed_(first),
      memory_(std::move(memory)) {
  std::atomic_ref(head_->consumed).store(first, std::memory_order_release);
}

RingSender::Result RingSender::SendRaw(std::span<const std::byte> packet) {
  if (!HasRoom()) return Result::kFull;
  if (packet.size() > kMaxRawBytes) return Result::kTooLarge;
  RefreshRoom();
  Slot& slot = head_->slots[sent_ % kRingSlots];
  hints_[sent_ % kRingSlots] = {.opcode = kNoOpcode};
  const std::span<const std::byte> pieces[] = {packet};
  if (packet.size() <= kSlotRoom) {
    CopyPieces(pieces, /*pad=*/0, slot.bytes);
    Publish(slot, kSlotRaw, /*header_bytes=*/0, packet.size());
  } else {
    CopyPieces(pieces, /*pad=*/0, TakeArena(slot, packet.size()));
    Publish(slot, kSlotRaw | kSlotArena, /*header_bytes=*/0, packet.size());
  }
  return Result::kSent;
}

std::byte* RingSender::TakeArena(Slot& slot, size_t bytes) {
  if (!populated_) PopulateArena();
  const size_t size = memory_.size() - sizeof(RingHead);
  size_t at = arena_at_;
  if (at + bytes > size) at = 0;
  arena_at_ = (at + bytes + kArenaAlign - 1) / kArenaAlign * kArenaAlign;
  const uint64_t offset = at;
  std::memcpy(slot.bytes + kSlotOffsetAt, &offset, sizeof(offset));
  return memory_.data() + sizeof(RingHead) + at;
}

// All pages at once cost less than one fault each, and none is left for later packets. Where the
// kernel cannot do that they come one by one.
void RingSender::PopulateArena() {
  populated_ = true;
  ::madvise(memory_.data() + sizeof(RingHead), memory_.size() - sizeof(RingHead),
            MADV_POPULATE_WRITE);
}

}  // namespace verbscope::soft
