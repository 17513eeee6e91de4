#include "transports/ibverbs/mapped_buffer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "transports/ibverbs/fake_verbs.h"

namespace verbscope {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

size_t PageSize() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

TEST(MappedBufferTest, IsPageAlignedZeroedAndOfTheSizeAskedFor) {
  for (const size_t bytes :
       {size_t{1}, PageSize() - 1, PageSize(), PageSize() + 1, size_t{1} << 20}) {
    const auto buffer = MapBuffer({.bytes = bytes}, SystemPaths());
    ASSERT_TRUE(buffer) << buffer.error().ToText();
    const auto memory = (*buffer)->bytes();
    EXPECT_EQ(memory.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % PageSize(), 0u);
    EXPECT_TRUE(std::all_of(memory.begin(), memory.end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
    memory.back() = std::byte{1};
  }
}

TEST(MappedBufferTest, EveryPageIsPresentBeforeItIsUsed) {
  const size_t pages = 16;
  const auto buffer = MapBuffer({.bytes = pages * PageSize()}, SystemPaths());
  ASSERT_TRUE(buffer);
  std::vector<unsigned char> present(pages);
  ASSERT_EQ(::mincore((*buffer)->bytes().data(), pages * PageSize(), present.data()), 0);
  EXPECT_THAT(present, Each(1));
}

TEST(MappedBufferTest, TheMappingGoesWithTheBuffer) {
  void* address = nullptr;
  {
    const auto buffer = MapBuffer({.bytes = 1}, SystemPaths());
    ASSERT_TRUE(buffer);
    address = (*buffer)->bytes().data();
  }
  unsigned char present = 0;
  EXPECT_EQ(::mincore(address, PageSize(), &present), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(MappedBufferTest, NoBytesAreAnEmptyBuffer) {
  const auto buffer = MapBuffer({.bytes = 0, .numa_node = 900, .huge_pages = true}, SystemPaths());
  ASSERT_TRUE(buffer);
  EXPECT_TRUE((*buffer)->bytes().empty());
}

TEST(MappedBufferTest, MoreMemoryThanThereIsIsAnErrorWithTheSize) {
  const auto huge = MapBuffer({.bytes = SIZE_MAX}, SystemPaths());
  ASSERT_FALSE(huge);
  const auto large = MapBuffer({.bytes = size_t{1} << 50}, SystemPaths());
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().error_class, ErrorClass::kSetup);
  EXPECT_THAT(large.error().message, HasSubstr("mmap(1024 TiB)"));
}

TEST(MappedBufferTest, MissingHugePagesAreCounted) {
  FakeSystem system;
  system.WriteProc("meminfo", "HugePages_Free:        3\nHugepagesize:       2048 kB\n");
  // 2 TiB of huge pages: more than any host of ours has reserved.
  const auto buffer = MapBuffer({.bytes = size_t{1} << 41, .huge_pages = true}, system.paths);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().cause, "1048576 huge page(s) of 2 MiB are needed and 3 are free");
  EXPECT_THAT(buffer.error().next_step, HasSubstr("vm.nr_hugepages"));
}

TEST(MappedBufferTest, ANodeThatDoesNotExistNamesThoseThatDo) {
  FakeSystem system;
  for (const int node : {1023, 5000}) {
    const auto buffer = MapBuffer({.bytes = 1, .numa_node = node}, system.paths);
    ASSERT_FALSE(buffer) << node;
    EXPECT_THAT(buffer.error().message, HasSubstr("mbind(node="));
    if (buffer.error().errno_value == EINVAL) {
      EXPECT_THAT(buffer.error().cause, HasSubstr("nodes online: 0-1"));
    }
  }
}

TEST(MappedBufferTest, TheFirstNodeCanBeChosenWhereThereIsNuma) {
  const auto buffer = MapBuffer({.bytes = PageSize(), .numa_node = 0}, SystemPaths());
  if (!buffer) {
    // No NUMA in this kernel, or a container that forbids it: then it says so.
    EXPECT_THAT(buffer.error().errno_value, ::testing::AnyOf(ENOSYS, EPERM));
    EXPECT_FALSE(buffer.error().cause.empty());
    return;
  }
  (*buffer)->bytes()[0] = std::byte{1};
  EXPECT_EQ((*buffer)->bytes().size(), PageSize());
}

}  // namespace
}  // namespace verbscope
