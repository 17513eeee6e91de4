#include "transports/soft/engine/sent_bytes.h"

#include "transports/soft/engine/dma.h"

namespace verbscope::soft {

std::span<const std::byte> SentBytes::Of(uint32_t psn, uint32_t una,
                                         std::span<const std::span<const std::byte>> now) {
  std::erase_if(packets_,
                [una](const auto& packet) { return static_cast<int32_t>(packet.first - una) < 0; });
  const auto [packet, first_time] = packets_.try_emplace(psn);
  std::vector<std::byte>& bytes = packet->second;
  if (!first_time) return bytes;
  for (const std::span<const std::byte> piece : now) {
    const size_t filled = bytes.size();
    bytes.resize(filled + piece.size());
    DmaCopy(bytes.data() + filled, piece.data(), piece.size());
  }
  return bytes;
}

}  // namespace verbscope::soft
