#include "core/cost/free_memory.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

constexpr char kMeminfo[] =
    "MemTotal:        2014536 kB\nMemFree:          100 kB\nMemAvailable:    1800448 kB\n";
constexpr uint64_t kAvailable = 1'800'448ULL * 1024;

TEST(FreeMemoryTest, IsWhatTheKernelCallsAvailable) {
  EXPECT_EQ(FreeMemoryBytes(kMeminfo, "", ""), kAvailable);
  EXPECT_EQ(FreeMemoryBytes(kMeminfo, "max\n", "4096\n"), kAvailable);
}

TEST(FreeMemoryTest, IsNoMoreThanTheCgroupHasLeft) {
  EXPECT_EQ(FreeMemoryBytes(kMeminfo, "1000000\n", "400000\n"), 600'000u);
  EXPECT_EQ(FreeMemoryBytes(kMeminfo, "1000000\n", "1000001\n"), 0u);
  EXPECT_EQ(FreeMemoryBytes("", "1000000\n", "400000\n"), 600'000u);
}

TEST(FreeMemoryTest, IsNotKnownWhenNobodySays) {
  EXPECT_EQ(FreeMemoryBytes("", "", ""), std::nullopt);
  EXPECT_EQ(FreeMemoryBytes("MemAvailable: many kB\n", "max", ""), std::nullopt);
}

}  // namespace
}  // namespace verbscope
