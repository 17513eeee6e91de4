// The memory regions of one device by key, and the one check that stands between a key from the
// wire and a byte of memory: key, range, rights and protection domain at once
// (IBTA 10.6.3, 9.7.4.1.5).
//
// Keys are chosen by the device (random over 32 bits, not 0); local and remote key are the same
// number. The table is open-addressed with as few loads as possible, because every message looks up
// at least one key. Used with the device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_MEMORY_TABLE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_MEMORY_TABLE_H_

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/soft/engine/defects.h"

namespace verbscope::soft {

struct MemoryRegion {
  uint32_t key = 0;      // 0: free entry
  uint32_t pd = 0;       // number of the protection domain
  uint32_t access = 0;   // ibv_access_flags
  uint64_t address = 0;  // virtual address of the first byte, as requests name it
  uint64_t bytes = 0;
};

class MemoryTable {
 public:
  // Room for `max_regions` at half load. Remote access ends at `max_access_bytes` of each region,
  // for tests of programs: some devices have such a bound.
  explicit MemoryTable(uint32_t max_regions, uint64_t max_access_bytes = UINT64_MAX,
                       Defects defects = {});

  // False when the key is 0 or taken, or the table is full.
  bool Add(const MemoryRegion& region);
  bool Remove(uint32_t key);

  const MemoryRegion* Find(uint32_t key) const {
    for (uint32_t slot = key & mask_;; slot = (slot + 1) & mask_) {
      const MemoryRegion& region = entries_[slot];
      if (region.key == key) return key != 0 ? &region : nullptr;
      if (region.key == 0) return nullptr;
    }
  }

  // Where [address, address + bytes) lies, or null: no such key, another PD, out of range, or a
  // right of `access` missing. `bytes` is 0 with Defect::kEmptyKey only (zero-length accesses check
  // nothing, IBTA 9.7.4.1.6).
  std::byte* Resolve(uint32_t key, uint64_t address, uint64_t bytes, uint32_t pd,
                     uint32_t access) const {
    const MemoryRegion* region = Find(key);
    if (region == nullptr || region->pd != pd || (region->access & access) != access) {
      return nullptr;
    }
    constexpr uint32_t kRemote =
        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    const uint64_t bound = (access & kRemote) != 0
                               ? std::min(region->bytes + remote_slack_bytes_, max_access_bytes_)
                               : region->bytes;
    const uint64_t offset = address - region->address;
    if (address < region->address || offset > bound || bytes > bound - offset) {
      return nullptr;
    }
    // Verbs carries addresses as integers. NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
  }

  // How many of the bytes from `address` on, that Resolve gave to a peer, the region really has.
  // Fewer than `bytes` only with Defect::kNoBounds: what is behind them must not be touched.
  uint32_t Inside(uint32_t key, uint64_t address, uint32_t bytes) const;

 private:
  uint32_t mask_;
  uint32_t limit_;
  uint32_t count_ = 0;
  uint64_t max_access_bytes_;
  uint64_t remote_slack_bytes_;        // behind each region; not 0 with Defect::kNoBounds only
  std::vector<MemoryRegion> entries_;  // at least half of them free, so every probe ends
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_MEMORY_TABLE_H_
