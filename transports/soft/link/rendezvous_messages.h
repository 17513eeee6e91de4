// What the memory links of two devices tell each other: the blob that says where a device is, and
// the messages on the Unix connection between them. Plain data and its bytes.
//
// Messages are one SEQPACKET record each:
//   Hello           the one who connects, first and only: file descriptors [ring, bell]
//   ChannelMessage  the one who accepts, any number: [eventfd] when it offers a channel
//
// Pure; any thread. Parsing never reads past the span and trusts nothing.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_RENDEZVOUS_MESSAGES_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_RENDEZVOUS_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "transports/soft/wire/frame.h"

namespace verbscope::soft {

// The name of one link of one opened device, for ever.
using Nonce = std::array<std::byte, 16>;

// Where a link is.
struct LinkAddress {
  Nonce nonce = {};
  uint32_t uid = 0;            // effective user
  uint64_t host_boot = 0;      // hash of this boot of this host; 0: not known
  uint64_t net_namespace = 0;  // its number in this boot; 0: not known

  bool operator==(const LinkAddress&) const = default;
};

std::vector<std::byte> EncodeBlob(const LinkAddress& address);
// An Error for bytes of another kind or version.
Expected<LinkAddress> ParseBlob(std::span<const std::byte> blob);
// The same host and network namespace: addresses of the loopback interface are shared.
bool OnThisHost(const LinkAddress& peer, const LinkAddress& local);
// Whether `peer` says that it is where `local` is: on this host, in this network namespace and of
// this user. The Error says what is different.
Status CheckHere(const LinkAddress& peer, const LinkAddress& local);

struct Hello {
  Nonce nonce = {};  // of the sender
  Flow flow;         // how its packets are addressed
};

std::vector<std::byte> EncodeHello(const Hello& hello);
std::optional<Hello> ParseHello(std::span<const std::byte> bytes);

struct ChannelMessage {
  uint32_t channel = 0;
  bool offered = false;  // false: withdrawn
};

std::vector<std::byte> EncodeChannelMessage(const ChannelMessage& message);
std::optional<ChannelMessage> ParseChannelMessage(std::span<const std::byte> bytes);

inline constexpr size_t kMaxMessageBytes = 256;

// The abstract socket of a link, without the leading zero byte.
std::string SocketName(const Nonce& nonce);

// A fresh nonce, this user and this boot.
Expected<LinkAddress> MakeLocalAddress();

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_RENDEZVOUS_MESSAGES_H_
