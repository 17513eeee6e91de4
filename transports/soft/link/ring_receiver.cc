#include "transports/soft/link/ring_receiver.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstring>

#include "transports/soft/wire/header.h"

namespace verbscope::soft {
namespace {

constexpr size_t kCacheLine = 64;
// How far ahead slots are fetched, both lines that small packets use.
constexpr uint32_t kPrefetchSlots = 8;
// How much of the next packet's payload.
constexpr size_t kPrefetchPayload = 12 * kCacheLine;

// Lines on their way while the headers are looked at: the rest of this packet, and a later slot.
inline void Prefetch(const RingHead& ring, uint32_t packet, uint64_t control) {
  const auto* slot = reinterpret_cast<const std::byte*>(&ring.slots[packet % kRingSlots]);
  const size_t used = sizeof(control) + static_cast<uint8_t>(control >> 40) + (control >> 48);
  for (size_t at = kCacheLine; at < used && at < kSlotBytes; at += kCacheLine) {
    __builtin_prefetch(slot + at);
  }
  const auto* ahead =
      reinterpret_cast<const std::byte*>(&ring.slots[(packet + kPrefetchSlots) % kRingSlots]);
  __builtin_prefetch(ahead);
  __builtin_prefetch(ahead + kCacheLine);
}

}  // namespace

// The hardware follows a copy through its page, but has to be told where the next one begins: 5 %
// of 1 MiB messages.
inline void RingReceiver::PrefetchPayload(uint32_t packet) const {
  Slot& slot = head_.slots[packet % kRingSlots];
  const uint64_t control = std::atomic_ref(slot.control).load(std::memory_order_relaxed);
  if (static_cast<uint32_t>(control) != LapOf(packet) || ((control >> 32) & kSlotArena) == 0)
    return;
  uint64_t offset;
  std::memcpy(&offset, slot.bytes + kSlotOffsetAt, sizeof(offset));
  if (offset >= arena_.size() || arena_.size() - offset < kPrefetchPayload) return;
  for (size_t at = 0; at < kPrefetchPayload; at += kCacheLine) {
    __builtin_prefetch(arena_.data() + offset + at);
  }
}

size_t RingReceiver::Poll(PacketReceiver& receiver, size_t budget, Counters& counters) {
  RingHead& ring = head_;
  uint32_t packet = next_.load(std::memory_order_relaxed);
  size_t taken = 0;
  for (; taken < budget; ++taken) {
    Slot& slot = ring.slots[packet % kRingSlots];
    const uint64_t control = std::atomic_ref(slot.control).load(std::memory_order_acquire);
    if (static_cast<uint32_t>(control) != LapOf(packet)) break;
    Prefetch(ring, packet, control);
    // Only behind another large one: looking at a slot that its sender is about to write takes the
    // line away from him, 60 ns of a ping-pong.
    if (((control >> 32) & kSlotArena) != 0) PrefetchPayload(packet + 1);
    Deliver(slot, control, receiver, counters);
    ++packet;
    next_.store(packet, std::memory_order_relaxed);
    if (packet % kConsumedStep == 0) {
      std::atomic_ref(ring.consumed).store(packet, std::memory_order_release);
    }
  }
  return taken;
}

void RingReceiver::Deliver(Slot& slot, uint64_t control, PacketReceiver& receiver,
                           Counters& counters) {
  const auto flags = static_cast<uint8_t>(control >> 32);
  const size_t header_bytes = static_cast<uint8_t>(control >> 40);
  const size_t carried_bytes = control >> 48;
  const std::byte* carried = slot.bytes + header_bytes;
  if (flags == 0 && header_bytes <= kMaxHeaderBytes && header_bytes + carried_bytes <= kSlotRoom)
      [[likely]] {
    // The plain case; nothing else to check.
  } else if ((flags & ~(kSlotArena | kSlotRaw)) != 0 || header_bytes > kMaxHeaderBytes ||
             carried_bytes > ((flags & kSlotRaw) != 0 ? kMaxRawBytes : kMaxCarriedBytes) ||
             ((flags & kSlotArena) != 0 ? !InArena(slot, carried_bytes, carried)
                                        : header_bytes + carried_bytes > kSlotRoom)) {
    ++counters.malformed_pkts;
    return;
  }
  if ((flags & kSlotRaw) != 0) [[unlikely]] {
    DeliverRaw({carried, carried_bytes}, receiver, counters);
    return;
  }
  std::array<std::byte, kMaxHeaderBytes> headers;
  std::memcpy(headers.data(), slot.bytes, headers.size());
  Header header;
  std::span<const std::byte> payload;
  if (Decode({headers.data(), header_bytes}, {carried, carried_bytes}, header, payload) !=
      DecodeResult::kOk) [[unlikely]] {
    ++counters.malformed_pkts;
    return;
  }
  receiver.Receive(path_, header, payload);
}

void RingReceiver::DeliverRaw(std::span<const std::byte> packet, PacketReceiver& receiver,
                              Counters& counters) {
  if (packet.size() < kBthBytes + kIcrcBytes) {
    ++counters.malformed_pkts;
    return;
  }
  // What was verified must be what is delivered.
  std::array<std::byte, kMaxRawBytes> copy;
  std::memcpy(copy.data(), packet.data(), packet.size());
  const std::span<const std::byte> bytes(copy.data(), packet.size());
  if (!VerifyTransport(flow_, bytes)) {
    ++counters.icrc_errors;
    return;
  }
  Header header;
  std::span<const std::byte> payload;
  if (Decode(bytes.first(bytes.size() - kIcrcBytes), header, payload) != DecodeResult::kOk) {
    ++counters.malformed_pkts;
    return;
  }
  receiver.Receive(path_, header, payload);
}

bool RingReceiver::InArena(const Slot& slot, size_t bytes, const std::byte*& at) {
  uint64_t offset;
  std::memcpy(&offset, slot.bytes + kSlotOffsetAt, sizeof(offset));
  if (bytes > arena_.size() || offset > arena_.size() - bytes) return false;
  if (!populated_) {
    // The sender has made the pages; this enters them all in our tables. Best effort, as there.
    populated_ = true;
    ::madvise(arena_.data(), arena_.size(), MADV_POPULATE_READ);
  }
  at = arena_.data() + offset;
  return true;
}

}  // namespace verbscope::soft
