#include "transports/soft/engine/spoiled_data.h"

#include "transports/soft/engine/dma.h"

namespace verbscope::soft {

SpoiledData::SpoiledData(DataFilter& filter, std::span<const std::byte> payload)
    : verdict_(filter.NextMessage()), bytes_(payload) {
  if (!verdict_.flip_bit) return;
  copy_.assign(payload.begin(), payload.end());
  copy_[copy_.size() / 2] ^= std::byte{1};
  bytes_ = copy_;
}

void WritePast(const MemoryTable& memory, uint32_t key, uint64_t address, uint32_t pd) {
  std::byte* at = memory.Resolve(key, address, 1, pd, /*access=*/0);
  if (at == nullptr) return;
  std::byte byte = {};
  DmaCopy(&byte, at, 1);
  byte = ~byte;
  DmaCopy(at, &byte, 1);
}

void WritePast(const MemoryTable& memory, std::span<const ibv_sge> sges, uint64_t bytes,
               uint32_t pd) {
  for (const ibv_sge& sge : sges) {
    if (bytes <= sge.length) {
      WritePast(memory, sge.lkey, sge.addr + bytes, pd);
      return;
    }
    bytes -= sge.length;
  }
}

}  // namespace verbscope::soft
