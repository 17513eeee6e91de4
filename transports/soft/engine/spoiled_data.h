// The last packet of a message as a DataFilter wants it to be stored: with a bit flipped, or not at
// all, or with the byte behind the message overwritten. Only for devices that have such a filter.
//
//   const SpoiledData data(*env.data_filter, payload);
//   if (!data.skip()) store data.bytes() …
//   if (data.write_past()) WritePast(env.memory, key, address_behind, pd);
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SPOILED_DATA_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SPOILED_DATA_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transports/soft/engine/environment.h"
#include "transports/soft/engine/memory_table.h"

namespace verbscope::soft {

class SpoiledData {
 public:
  // Counts one message. `payload` of its last packet, not empty; it must outlive this.
  SpoiledData(DataFilter& filter, std::span<const std::byte> payload);
  SpoiledData(const SpoiledData&) = delete;
  SpoiledData& operator=(const SpoiledData&) = delete;

  bool skip() const { return verdict_.skip_last; }
  bool write_past() const { return verdict_.write_past && !skip(); }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  const DataVerdict verdict_;
  std::vector<std::byte> copy_;
  std::span<const std::byte> bytes_;
};

// Inverts the byte at `address`. What is outside of the region stays as it is: it may not even be
// there.
void WritePast(const MemoryTable& memory, uint32_t key, uint64_t address, uint32_t pd);
// The same behind the first `bytes` bytes of a list of SGEs, at least 1.
void WritePast(const MemoryTable& memory, std::span<const ibv_sge> sges, uint64_t bytes,
               uint32_t pd);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_SPOILED_DATA_H_
