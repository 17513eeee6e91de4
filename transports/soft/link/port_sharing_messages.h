// What the processes that share a UDP port (port_sharing.h) tell each other on Unix sockets. Plain
// data and its bytes. One message is one SEQPACKET record:
//
//   Hello    member to keeper, first and once, with [life] if it is new. `index` and `id`: the slot
//            it has, kNoSlot and 0 for a newcomer; `slots`: how many it knows
//   Entry    keeper to all, ascending by index, with [socket, life]: slot `index` belongs to the
//            member `id`, whose QPNs have `tag`. Member to keeper as the answer to Want
//   Want     keeper to member: entries from `index` on, which the keeper lacks
//   Welcome  keeper to member: has been sent all, and so has everybody else; owns slot `index`
//   Refused  keeper to newcomer: no place, for the reason `errno_value`
//
// Pure; any thread. Parsing never reads past the span and trusts nothing.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_MESSAGES_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transports/soft/link/local_address.h"

namespace verbscope::soft {

// Members at a time. Each holds two descriptors per slot, 256 of the usual limit of 1024.
inline constexpr uint32_t kMaxSharedSlots = 128;
inline constexpr uint32_t kNoSlot = 0xffffffff;
inline constexpr uint32_t kMaxTag = 255;
static_assert(kMaxSharedSlots < kMaxTag, "a newcomer never waits for a tag");

struct SharingMessage {
  enum class Kind : uint32_t { kHello = 1, kEntry, kWant, kWelcome, kRefused };
  Kind kind = Kind::kHello;
  uint32_t index = kNoSlot;
  uint32_t tag = 0;
  uint32_t slots = 0;
  uint32_t errno_value = 0;
  uint64_t id = 0;

  bool operator==(const SharingMessage&) const = default;
};

std::vector<std::byte> EncodeSharingMessage(const SharingMessage& message);
// Nothing also for numbers that no member could send, such as an Entry with tag 0.
std::optional<SharingMessage> ParseSharingMessage(std::span<const std::byte> bytes);

// The keeper's abstract socket. Names the protocol's version: others are strangers.
std::string KeeperName(uint32_t uid, const LocalAddress& address);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_MESSAGES_H_
