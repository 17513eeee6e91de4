// What a UDP link tells its peers: that it is a device of this kind, and its addresses. The bytes
// travel between hosts; ParseUdpBlob is fed with what others sent. Pure; any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_BLOB_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_BLOB_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/error.h"

namespace verbscope::soft {

inline constexpr size_t kMaxUdpLocals = 4;

using UdpAddresses = std::vector<std::array<uint8_t, 16>>;  // GIDs

std::vector<std::byte> EncodeUdpBlob(const UdpAddresses& addresses);
// Whether the bytes are a UDP link's at all, of whatever version.
bool IsUdpBlob(std::span<const std::byte> blob);
// A setup Error for bytes of another link or version.
Expected<UdpAddresses> ParseUdpBlob(std::span<const std::byte> blob);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_BLOB_H_
