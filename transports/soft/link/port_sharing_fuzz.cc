// libFuzzer target of the messages between processes that share a UDP port, and of the kernel's
// table of sockets: bazel build --config=fuzz //transports/soft/link:port_sharing_fuzz
//
// Properties: no input makes a parser read out of bounds; a message that parses has numbers a
// member may use as they are, and encodes to the same bytes; what is read as a socket's entry says
// whose it is.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "transports/soft/link/local_address.h"
#include "transports/soft/link/local_address_holders.h"
#include "transports/soft/link/port_sharing_messages.h"

namespace verbscope::soft {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckMessage(std::span<const std::byte> bytes) {
  const std::optional<SharingMessage> message = ParseSharingMessage(bytes);
  if (!message) return;
  Require(message->index < kMaxSharedSlots || message->index == kNoSlot ||
          message->kind == SharingMessage::Kind::kRefused);
  if (message->kind == SharingMessage::Kind::kEntry) {
    Require(message->tag >= 1 && message->tag <= kMaxTag && message->index < kMaxSharedSlots);
  }
  const std::vector<std::byte> again = EncodeSharingMessage(*message);
  Require(again.size() == bytes.size() && std::memcmp(again.data(), bytes.data(), 24) == 0);
}

}  // namespace
}  // namespace verbscope::soft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace verbscope::soft;
  CheckMessage(std::as_bytes(std::span(data, size)));
  std::vector<PortHolder> holders;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  AddHolders(text, LocalAddress::Ipv4(127, 0, 0, 1), holders);
  Require(holders.size() <= size);
  return 0;
}
