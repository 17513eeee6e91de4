// What a soft device tells a peer of its links: a blob that travels beside the QPN, through the
// control connection. It says which links there are, in the order in which they are preferred.
//
// Plain data and its bytes. Parsing is fed with what others sent, and looks at the frame only: the
// parts are the links' own (memory_link.h, udp_blob.h). Pure; any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_LINK_BLOB_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_LINK_BLOB_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace verbscope::soft {

// An empty part: the device does not have that link.
struct LinkBlob {
  std::span<const std::byte> memory = {};
  std::span<const std::byte> udp = {};
  // The device takes what the peer can reach: memory, else UDP.
  bool chooses = false;
};

std::vector<std::byte> EncodeLinkBlob(const LinkBlob& blob);
// The parts point into `bytes`. Nullopt: not the blob of a soft device of this version.
std::optional<LinkBlob> ParseLinkBlob(std::span<const std::byte> bytes);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_LINK_BLOB_H_
