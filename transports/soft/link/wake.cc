#include "transports/soft/link/wake.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>

#include "transports/soft/wire/opcode.h"

namespace verbscope::soft {
namespace {

std::atomic_ref<uint32_t> Attention(RingHead& ring) { return std::atomic_ref(ring.attention); }

std::atomic_ref<uint32_t> ArmWord(RingHead& ring, ArmSide side, uint32_t slot) {
  return std::atomic_ref(ring.arms[static_cast<size_t>(side)][slot % kArmSlots]);
}

// Requests complete receives, responses complete sends.
ArmSide SideOf(const OpcodeInfo& info) {
  return info.Is(kOpRequest) ? ArmSide::kReceive : ArmSide::kSend;
}

// Whether a packet of this kind can be the one that completes something.
bool CanComplete(const OpcodeInfo& info) {
  if (!info.Is(kOpEnds)) return false;
  return info.Is(kOpResponse) || info.Is(kOpSend | kOpImm);
}

// READs and atomics are served, not completed, by their receiver: that a channel was written for
// another packet does not mean that anybody serves them soon.
bool NeedsService(const OpcodeInfo& info) {
  return !info.valid() || (info.Is(kOpRequest) && info.Is(kOpRead | kOpAtomic));
}

}  // namespace

void SetArm(RingHead& ring, const ArmEntry& arm) {
  // First the count, so that it is never less than the words that are set.
  Attention(ring).fetch_add(kAttentionArm, std::memory_order_seq_cst);
  const uint32_t old =
      ArmWord(ring, arm.side, arm.slot).exchange(arm.value, std::memory_order_seq_cst);
  if (old != 0) Attention(ring).fetch_sub(kAttentionArm, std::memory_order_seq_cst);
}

void ClearArm(RingHead& ring, ArmSide side, uint32_t slot) {
  if (ArmWord(ring, side, slot).load(std::memory_order_relaxed) == 0) return;
  if (ArmWord(ring, side, slot).exchange(0, std::memory_order_seq_cst) != 0) {
    Attention(ring).fetch_sub(kAttentionArm, std::memory_order_seq_cst);
  }
}

std::vector<ArmEntry> TakeArms(RingHead& ring) {
  std::vector<ArmEntry> arms;
  for (const ArmSide side : {ArmSide::kReceive, ArmSide::kSend}) {
    for (uint32_t slot = 0; slot < kArmSlots; ++slot) {
      const uint32_t value = ArmWord(ring, side, slot).load(std::memory_order_relaxed);
      if (value == 0) continue;
      ClearArm(ring, side, slot);
      arms.push_back({side, slot, value});
    }
  }
  return arms;
}

void SetBell(RingHead& ring) {
  Attention(ring).fetch_or(kAttentionBell, std::memory_order_seq_cst);
}

void ClearBell(RingHead& ring) {
  // Mostly the sender has done it; no need to take the line from it then.
  if ((Attention(ring).load(std::memory_order_relaxed) & kAttentionBell) == 0) return;
  Attention(ring).fetch_and(~kAttentionBell, std::memory_order_seq_cst);
}

void PeerWaker::AddChannel(uint32_t channel, FileDescriptor event_fd) {
  if (channels_.size() >= kMaxChannels || EventFdOf(channel) >= 0) return;
  channels_.push_back({channel, std::move(event_fd)});
}

void PeerWaker::RemoveChannel(uint32_t channel) {
  std::erase_if(channels_, [channel](const Channel& c) { return c.number == channel; });
}

void PeerWaker::Wake(const RingSender& ring, WakeCounts& counts) {
  const auto [first, end] = ring.Unflushed();
  const uint32_t attention = Attention(ring.head()).load(std::memory_order_relaxed);
  Hits hits;
  if (attention >= kAttentionArm) {
    for (uint32_t packet = first; packet != end; ++packet) {
      const WakeHint& hint = ring.hint(packet);
      const OpcodeInfo& info = Info(hint.opcode);
      if (!CanComplete(info)) continue;
      if (HitArm(ring.head(), hint, counts)) hits.Add(SideOf(info), hint.arm_slot);
    }
  }
  if ((attention & kAttentionBell) == 0) return;
  for (uint32_t packet = first; packet != end; ++packet) {
    const WakeHint& hint = ring.hint(packet);
    const OpcodeInfo& info = Info(hint.opcode);
    if (!NeedsService(info) && hits.Has(SideOf(info), hint.arm_slot)) continue;
    RingBell(ring.head(), /*always=*/false, counts);
    return;
  }
}

bool PeerWaker::HitArm(RingHead& ring, const WakeHint& hint, WakeCounts& counts) {
  std::atomic_ref<uint32_t> word = ArmWord(ring, SideOf(Info(hint.opcode)), hint.arm_slot);
  const uint32_t seen = word.load(std::memory_order_relaxed);
  if (seen == 0 || ((seen & kArmSolicitedOnly) != 0 && !hint.solicited)) return false;
  const uint32_t value = word.exchange(0, std::memory_order_seq_cst);
  if (value == 0) return false;  // withdrawn this moment
  Attention(ring).fetch_sub(kAttentionArm, std::memory_order_seq_cst);
  const int event_fd = EventFdOf((value & ~kArmSolicitedOnly) - 1);
  if (event_fd >= 0) {
    ++counts.channels;
    ::eventfd_write(event_fd, 1);
  } else {
    // The peer's device finds the completion itself, and writes the channel.
    ++counts.unknown_channels;
    RingBell(ring, /*always=*/true, counts);
  }
  return true;
}

void PeerWaker::RingBell(RingHead& ring, bool always, WakeCounts& counts) {
  const uint32_t old = Attention(ring).fetch_and(~kAttentionBell, std::memory_order_seq_cst);
  if (!always && (old & kAttentionBell) == 0) return;
  ++counts.bells;
  ::eventfd_write(bell_.get(), 1);
}

int PeerWaker::EventFdOf(uint32_t channel) const {
  for (const Channel& c : channels_) {
    if (c.number == channel) return c.event_fd.get();
  }
  return -1;
}

void PeerWaker::Hits::Add(ArmSide side, uint32_t slot) {
  size_t& count = counts[static_cast<size_t>(side)];
  if (count < slots[0].size()) slots[static_cast<size_t>(side)][count++] = slot;
}

bool PeerWaker::Hits::Has(ArmSide side, uint32_t slot) const {
  const auto& known = slots[static_cast<size_t>(side)];
  const auto end = known.begin() + static_cast<ptrdiff_t>(counts[static_cast<size_t>(side)]);
  return std::find(known.begin(), end, slot) != end;
}

}  // namespace verbscope::soft
