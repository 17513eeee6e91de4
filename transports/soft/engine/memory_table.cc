#include "transports/soft/engine/memory_table.h"

#include <algorithm>
#include <bit>

namespace verbscope::soft {
namespace {

constexpr uint64_t kDefectSlackBytes = 64;

}  // namespace

MemoryTable::MemoryTable(uint32_t max_regions, uint64_t max_access_bytes, Defects defects)
    : mask_(std::bit_ceil(max_regions < 8 ? 16U : max_regions * 2) - 1),
      limit_(max_regions),
      max_access_bytes_(max_access_bytes),
      remote_slack_bytes_(defects.Has(Defect::kNoBounds) ? kDefectSlackBytes : 0),
      entries_(mask_ + 1) {}

bool MemoryTable::Add(const MemoryRegion& region) {
  if (region.key == 0 || count_ >= limit_ || Find(region.key) != nullptr) return false;
  uint32_t slot = region.key & mask_;
  while (entries_[slot].key != 0) slot = (slot + 1) & mask_;
  entries_[slot] = region;
  ++count_;
  return true;
}

uint32_t MemoryTable::Inside(uint32_t key, uint64_t address, uint32_t bytes) const {
  const MemoryRegion* region = Find(key);
  if (region == nullptr) return 0;
  const uint64_t left = region->bytes - std::min(region->bytes, address - region->address);
  return static_cast<uint32_t>(std::min<uint64_t>(bytes, left));
}

bool MemoryTable::Remove(uint32_t key) {
  const MemoryRegion* found = Find(key);
  if (found == nullptr) return false;
  // Those behind it in the same run move up where their own place allows it, so a probe never has
  // to go over a gap and the table stays as fast as when it was new.
  auto gap = static_cast<uint32_t>(found - entries_.data());
  for (uint32_t at = (gap + 1) & mask_; entries_[at].key != 0; at = (at + 1) & mask_) {
    const uint32_t home = entries_[at].key & mask_;
    if (((at - home) & mask_) < ((at - gap) & mask_)) continue;
    entries_[gap] = entries_[at];
    gap = at;
  }
  entries_[gap] = {};
  --count_;
  return true;
}

}  // namespace verbscope::soft
