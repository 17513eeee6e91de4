#include "transports/soft/device/link_blob.h"

#include <cstdint>

#include "transports/soft/link/memory_link.h"

namespace verbscope::soft {
namespace {

// The first byte. After kBoth: the size of the memory link's part in one byte, that part, and the
// UDP link's.
enum class BlobKind : uint8_t { kMemory = 'm', kUdp = 'u', kBoth = 'a' };

static_assert(kMaxBlobBytes <= UINT8_MAX, "the size of the memory link's part is one byte");

void Append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

std::vector<std::byte> EncodeLinkBlob(const LinkBlob& blob) {
  const BlobKind kind = blob.chooses       ? BlobKind::kBoth
                        : blob.udp.empty() ? BlobKind::kMemory
                                           : BlobKind::kUdp;
  std::vector<std::byte> bytes = {static_cast<std::byte>(kind)};
  if (kind == BlobKind::kBoth) bytes.push_back(static_cast<std::byte>(blob.memory.size()));
  Append(bytes, blob.memory);
  Append(bytes, blob.udp);
  return bytes;
}

std::optional<LinkBlob> ParseLinkBlob(std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::nullopt;
  const std::span<const std::byte> rest = bytes.subspan(1);
  switch (static_cast<BlobKind>(bytes[0])) {
    case BlobKind::kMemory:
      return LinkBlob{.memory = rest};
    case BlobKind::kUdp:
      return LinkBlob{.udp = rest};
    case BlobKind::kBoth: {
      const size_t memory = rest.empty() ? 0 : std::to_integer<size_t>(rest[0]);
      if (memory == 0 || rest.size() < 1 + memory) return std::nullopt;
      return LinkBlob{
          .memory = rest.subspan(1, memory), .udp = rest.subspan(1 + memory), .chooses = true};
    }
  }
  return std::nullopt;
}

}  // namespace verbscope::soft
