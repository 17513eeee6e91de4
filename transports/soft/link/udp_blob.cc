#include "transports/soft/link/udp_blob.h"

#include <cstring>

#include "core/base/error.h"

namespace verbscope::soft {
namespace {

// "VSUL", version, number of addresses; then 16 bytes for each.
constexpr std::array<std::byte, 4> kMagic = {std::byte{'V'}, std::byte{'S'}, std::byte{'U'},
                                             std::byte{'L'}};
// 2: both ends acknowledge what nobody asked for (engine/responder.h).
constexpr std::byte kVersion{2};
constexpr size_t kHeadBytes = 6;
constexpr size_t kAddressBytes = 16;

}  // namespace

std::vector<std::byte> EncodeUdpBlob(const UdpAddresses& addresses) {
  std::vector<std::byte> blob(kMagic.begin(), kMagic.end());
  blob.push_back(kVersion);
  blob.push_back(static_cast<std::byte>(addresses.size()));
  for (const auto& address : addresses) {
    for (const uint8_t byte : address) blob.push_back(std::byte{byte});
  }
  return blob;
}

bool IsUdpBlob(std::span<const std::byte> blob) {
  return blob.size() >= kMagic.size() &&
         std::memcmp(blob.data(), kMagic.data(), kMagic.size()) == 0;
}

Expected<UdpAddresses> ParseUdpBlob(std::span<const std::byte> blob) {
  if (!IsUdpBlob(blob)) {
    return Fail(SetupError("the peer's soft device does not send through UDP, and this one does",
                           "one side has link=memory, the other link=udp",
                           "use the same link= on both sides"));
  }
  const size_t count = blob.size() > kHeadBytes - 1 ? std::to_integer<size_t>(blob[5]) : 0;
  if (blob.size() < kHeadBytes || blob[4] != kVersion || count == 0 || count > kMaxUdpLocals ||
      blob.size() != kHeadBytes + count * kAddressBytes) {
    return Fail(SetupError("the peer's soft device says where it is in a way unknown here",
                           "the two sides are of different versions",
                           "use the same version on both sides"));
  }
  UdpAddresses addresses(count);
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(addresses[i].data(), blob.data() + kHeadBytes + i * kAddressBytes, kAddressBytes);
  }
  return addresses;
}

}  // namespace verbscope::soft
