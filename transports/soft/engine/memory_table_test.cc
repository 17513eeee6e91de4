#include "transports/soft/engine/memory_table.h"

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <map>
#include <random>

namespace verbscope::soft {
namespace {

MemoryRegion Region(uint32_t key) {
  return {.key = key, .pd = 3, .access = IBV_ACCESS_LOCAL_WRITE, .address = 0x1000, .bytes = 0x100};
}

TEST(MemoryTableTest, ResolvesWhatIsInsideAndAllowed) {
  MemoryTable table(8);
  ASSERT_TRUE(table.Add(Region(7)));
  const auto at = [&table](uint64_t address, uint64_t bytes, uint32_t pd = 3,
                           uint32_t access = IBV_ACCESS_LOCAL_WRITE, uint32_t key = 7) {
    return reinterpret_cast<uintptr_t>(table.Resolve(key, address, bytes, pd, access));
  };
  EXPECT_EQ(at(0x1000, 0x100), 0x1000U);
  EXPECT_EQ(at(0x10ff, 1), 0x10ffU);
  EXPECT_EQ(at(0x1000, 1, 3, 0), 0x1000U);
  EXPECT_EQ(at(0xfff, 1), 0U);
  EXPECT_EQ(at(0x1000, 0x101), 0U);
  EXPECT_EQ(at(0x1100, 1), 0U);
  EXPECT_EQ(at(0x1010, ~uint64_t{0}), 0U);
  EXPECT_EQ(at(~uint64_t{0}, 0x1010), 0U);
  EXPECT_EQ(at(0x1000, 1, 4), 0U);
  EXPECT_EQ(at(0x1000, 1, 3, IBV_ACCESS_REMOTE_READ), 0U);
  EXPECT_EQ(at(0x1000, 1, 3, 0, 8), 0U);
  EXPECT_EQ(at(0, 1, 0, 0, 0), 0U) << "key 0 is nobody's";
}

TEST(MemoryTableTest, ABoundOfAccessIsForPeersOnly) {
  MemoryTable table(8, /*max_access_bytes=*/0x80);
  MemoryRegion region = Region(7);
  region.access |= IBV_ACCESS_REMOTE_READ;
  ASSERT_TRUE(table.Add(region));
  EXPECT_NE(table.Resolve(7, 0x1000, 0x80, 3, IBV_ACCESS_REMOTE_READ), nullptr);
  EXPECT_EQ(table.Resolve(7, 0x1000, 0x81, 3, IBV_ACCESS_REMOTE_READ), nullptr);
  EXPECT_EQ(table.Resolve(7, 0x1081, 1, 3, IBV_ACCESS_REMOTE_READ), nullptr);
  EXPECT_NE(table.Resolve(7, 0x1000, 0x100, 3, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_NE(table.Resolve(7, 0x1000, 0x100, 3, 0), nullptr);
}

TEST(MemoryTableTest, WithoutBoundsPeersGoBeyondAndAreToldWhatIsInside) {
  MemoryTable table(8, UINT64_MAX, {Defect::kNoBounds});
  MemoryRegion region = Region(7);
  region.access |= IBV_ACCESS_REMOTE_READ;
  ASSERT_TRUE(table.Add(region));
  EXPECT_NE(table.Resolve(7, 0x1000, 0x140, 3, IBV_ACCESS_REMOTE_READ), nullptr);
  EXPECT_NE(table.Resolve(7, 0x1110, 0x30, 3, IBV_ACCESS_REMOTE_READ), nullptr);
  EXPECT_EQ(table.Resolve(7, 0x1000, 0x141, 3, IBV_ACCESS_REMOTE_READ), nullptr);
  EXPECT_EQ(table.Resolve(7, 0x1000, 0x101, 3, IBV_ACCESS_LOCAL_WRITE), nullptr);
  EXPECT_EQ(table.Inside(7, 0x1000, 0x140), 0x100U);
  EXPECT_EQ(table.Inside(7, 0x10f0, 0x40), 0x10U);
  EXPECT_EQ(table.Inside(7, 0x1110, 0x30), 0U);
  EXPECT_EQ(table.Inside(7, 0x1000, 0x100), 0x100U);
}

TEST(MemoryTableTest, RefusesWhatItCannotHold) {
  MemoryTable table(2);
  EXPECT_FALSE(table.Add(Region(0)));
  EXPECT_TRUE(table.Add(Region(1)));
  EXPECT_FALSE(table.Add(Region(1)));
  EXPECT_TRUE(table.Add(Region(2)));
  EXPECT_FALSE(table.Add(Region(3)));
  EXPECT_FALSE(table.Remove(3));
  EXPECT_TRUE(table.Remove(1));
  EXPECT_FALSE(table.Remove(1));
  EXPECT_TRUE(table.Add(Region(3)));
}

// Keys close together share their probes; a full table that lives long is where a wrong removal
// shows.
TEST(MemoryTableTest, AgreesWithAMapForEver) {
  std::mt19937 random(1);
  MemoryTable table(8);
  std::map<uint32_t, bool> held;
  const auto some_key = [&random] {
    return static_cast<uint32_t>(1 + random() % 40 + (random() % 3 << 16));
  };
  for (int i = 0; i < 100'000; ++i) {
    const uint32_t key = some_key();
    if (random() % 2 == 0) {
      const bool fits = held.size() < 8 && !held.contains(key);
      ASSERT_EQ(table.Add(Region(key)), fits);
      if (fits) held[key] = true;
    } else {
      ASSERT_EQ(table.Remove(key), held.erase(key) == 1);
    }
    const uint32_t other = some_key();
    ASSERT_EQ(table.Find(other) != nullptr, held.contains(other));
  }
}

}  // namespace
}  // namespace verbscope::soft
