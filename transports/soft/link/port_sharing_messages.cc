#include "transports/soft/link/port_sharing_messages.h"

#include <fmt/core.h>

#include <cstring>
#include <type_traits>

#include "transports/soft/link/rendezvous_messages.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kMagic = 0x53505356;  // "VSPS"

// Both ends are on one host, so fields travel as they are in memory.
struct MessageBytes {
  uint32_t magic;
  uint32_t kind;
  uint32_t index;
  uint32_t tag;
  uint32_t slots;
  uint32_t errno_value;
  uint64_t id;
};
static_assert(std::has_unique_object_representations_v<MessageBytes>);
static_assert(sizeof(MessageBytes) <= kMaxMessageBytes);

using Kind = SharingMessage::Kind;

bool Sensible(const SharingMessage& m) {
  const bool slot = m.index < kMaxSharedSlots && m.id != 0;
  const bool tag = m.tag >= 1 && m.tag <= kMaxTag;
  switch (m.kind) {
    case Kind::kHello:
      if (m.index == kNoSlot) return m.id == 0 && m.slots == 0;
      return slot && m.slots > m.index && m.slots <= kMaxSharedSlots;
    case Kind::kEntry:
    case Kind::kWelcome:
      return slot && tag;
    case Kind::kWant:
      return m.index < kMaxSharedSlots;
    case Kind::kRefused:
      return m.errno_value != 0;
  }
  return false;
}

}  // namespace

std::vector<std::byte> EncodeSharingMessage(const SharingMessage& message) {
  const MessageBytes value = {.magic = kMagic,
                              .kind = static_cast<uint32_t>(message.kind),
                              .index = message.index,
                              .tag = message.tag,
                              .slots = message.slots,
                              .errno_value = message.errno_value,
                              .id = message.id};
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

std::optional<SharingMessage> ParseSharingMessage(std::span<const std::byte> bytes) {
  MessageBytes value;
  if (bytes.size() != sizeof(value)) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof(value));
  if (value.magic != kMagic) return std::nullopt;
  const SharingMessage message = {.kind = static_cast<Kind>(value.kind),
                                  .index = value.index,
                                  .tag = value.tag,
                                  .slots = value.slots,
                                  .errno_value = value.errno_value,
                                  .id = value.id};
  if (!Sensible(message)) return std::nullopt;
  return message;
}

std::string KeeperName(uint32_t uid, const LocalAddress& address) {
  // The number of an interface, not its name: names change and may be of any length.
  std::string name = fmt::format("verbscope-soft-port-1-{}-", uid);
  for (const uint8_t b : address.gid) name += fmt::format("{:02x}", b);
  if (address.IsLinkLocal()) name += fmt::format("-{}", address.interface_index);
  return name;
}

}  // namespace verbscope::soft
