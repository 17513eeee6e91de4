#include "transports/common/mapped_buffer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "transports/common/temp_tree.h"

namespace verbscope {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

size_t PageSize() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

// What holds for private and for shared buffers.
class MappedBufferTest : public ::testing::TestWithParam<bool> {
 protected:
  static Expected<std::unique_ptr<Buffer>> Map(const BufferOptions& options,
                                               const SystemPaths& paths) {
    if (GetParam()) return MapSharedBuffer(options, paths);
    return MapBuffer(options, paths);
  }
};
INSTANTIATE_TEST_SUITE_P(Kinds, MappedBufferTest, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Shared" : "Private"; });

TEST_P(MappedBufferTest, IsPageAlignedZeroedAndOfTheSizeAskedFor) {
  for (const size_t bytes :
       {size_t{1}, PageSize() - 1, PageSize(), PageSize() + 1, size_t{1} << 20}) {
    const auto buffer = Map({.bytes = bytes}, SystemPaths());
    ASSERT_TRUE(buffer) << buffer.error().ToText();
    const auto memory = (*buffer)->bytes();
    EXPECT_EQ(memory.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % PageSize(), 0u);
    EXPECT_TRUE(std::all_of(memory.begin(), memory.end(),
                            [](std::byte byte) { return byte == std::byte{0}; }));
    memory.back() = std::byte{1};
  }
}

TEST_P(MappedBufferTest, EveryPageIsPresentBeforeItIsUsed) {
  const size_t pages = 16;
  const auto buffer = Map({.bytes = pages * PageSize()}, SystemPaths());
  ASSERT_TRUE(buffer);
  std::vector<unsigned char> present(pages);
  ASSERT_EQ(::mincore((*buffer)->bytes().data(), pages * PageSize(), present.data()), 0);
  EXPECT_THAT(present, Each(1));
}

TEST_P(MappedBufferTest, TheMappingGoesWithTheBuffer) {
  void* address = nullptr;
  {
    const auto buffer = Map({.bytes = 1}, SystemPaths());
    ASSERT_TRUE(buffer);
    address = (*buffer)->bytes().data();
  }
  unsigned char present = 0;
  EXPECT_EQ(::mincore(address, PageSize(), &present), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST_P(MappedBufferTest, NoBytesAreAnEmptyBuffer) {
  const auto buffer = Map({.bytes = 0, .numa_node = 900, .huge_pages = true}, SystemPaths());
  ASSERT_TRUE(buffer);
  EXPECT_TRUE((*buffer)->bytes().empty());
}

TEST_P(MappedBufferTest, MoreMemoryThanThereIsIsAnErrorWithTheSize) {
  const auto huge = Map({.bytes = SIZE_MAX}, SystemPaths());
  ASSERT_FALSE(huge);
  const auto large = Map({.bytes = size_t{1} << 50}, SystemPaths());
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().error_class, ErrorClass::kSetup);
  EXPECT_THAT(large.error().message, HasSubstr("mmap(1024 TiB)"));
}

TEST_P(MappedBufferTest, MissingHugePagesAreCounted) {
  const TempTree proc;
  proc.Write("meminfo", "HugePages_Free:        3\nHugepagesize:       2048 kB\n");
  // 2 TiB of huge pages: more than any host of ours has reserved.
  const auto buffer = Map({.bytes = size_t{1} << 41, .huge_pages = true}, {.proc = proc.root()});
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().cause, "1048576 huge page(s) of 2 MiB are needed and 3 are free");
  EXPECT_THAT(buffer.error().next_step, HasSubstr("vm.nr_hugepages"));
}

TEST_P(MappedBufferTest, ANodeThatDoesNotExistNamesThoseThatDo) {
  const TempTree sysfs;
  sysfs.Write("devices/system/node/online", "0-1\n");
  for (const int node : {1023, 5000}) {
    const auto buffer = Map({.bytes = 1, .numa_node = node}, {.sysfs = sysfs.root()});
    ASSERT_FALSE(buffer) << node;
    EXPECT_THAT(buffer.error().message, HasSubstr("mbind(node="));
    if (buffer.error().errno_value == EINVAL) {
      EXPECT_THAT(buffer.error().cause, HasSubstr("nodes online: 0-1"));
    }
  }
}

TEST_P(MappedBufferTest, TheFirstNodeCanBeChosenWhereThereIsNuma) {
  const auto buffer = Map({.bytes = PageSize(), .numa_node = 0}, SystemPaths());
  if (!buffer) {
    // No NUMA in this kernel, or a container that forbids it: then it says so.
    EXPECT_THAT(buffer.error().errno_value, ::testing::AnyOf(ENOSYS, EPERM));
    EXPECT_FALSE(buffer.error().cause.empty());
    return;
  }
  (*buffer)->bytes()[0] = std::byte{1};
  EXPECT_EQ((*buffer)->bytes().size(), PageSize());
}

TEST(PrivateBufferTest, HasNoDescriptor) {
  const auto buffer = MapBuffer({.bytes = 1}, SystemPaths());
  ASSERT_TRUE(buffer);
  const auto* mapped = dynamic_cast<const MappedBuffer*>(buffer->get());
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(mapped->fd(), -1);
  EXPECT_EQ(mapped->mapped_bytes(), PageSize());
}

// A second mapping of the buffer's pages, as another process makes it.
std::byte* MapAgain(const SharedBuffer& buffer) {
  void* mapping = ::mmap(nullptr, buffer.mapped_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
                         buffer.fd(), /*offset=*/0);
  return mapping == MAP_FAILED ? nullptr : static_cast<std::byte*>(mapping);
}

TEST(SharedBufferTest, EachSideSeesWhatTheOtherWrites) {
  const size_t bytes = PageSize() + 1;
  const auto buffer = MapSharedBuffer({.bytes = bytes}, SystemPaths());
  ASSERT_TRUE(buffer) << buffer.error().ToText();
  EXPECT_EQ((*buffer)->mapped_bytes(), 2 * PageSize());
  std::byte* other = MapAgain(**buffer);
  ASSERT_NE(other, nullptr);
  const auto own = (*buffer)->bytes();
  ASSERT_NE(other, own.data());
  own.front() = std::byte{1};
  own.back() = std::byte{2};
  EXPECT_EQ(other[0], std::byte{1});
  EXPECT_EQ(other[bytes - 1], std::byte{2});
  other[PageSize()] = std::byte{3};
  EXPECT_EQ(own[PageSize()], std::byte{3});
  ::munmap(other, (*buffer)->mapped_bytes());
}

TEST(SharedBufferTest, ASecondMappingOutlivesTheBuffer) {
  std::byte* other = nullptr;
  int fd = -1;
  {
    const auto buffer = MapSharedBuffer({.bytes = 1}, SystemPaths());
    ASSERT_TRUE(buffer);
    (*buffer)->bytes()[0] = std::byte{7};
    other = MapAgain(**buffer);
    fd = (*buffer)->fd();
  }
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(other[0], std::byte{7});
  EXPECT_EQ(::fcntl(fd, F_GETFD), -1) << "the descriptor is still open";
  ::munmap(other, PageSize());
}

TEST(SharedBufferTest, NobodyCanChangeItsSize) {
  const auto buffer = MapSharedBuffer({.bytes = PageSize() + 1}, SystemPaths());
  ASSERT_TRUE(buffer);
  const int fd = (*buffer)->fd();
  const int seals = ::fcntl(fd, F_GET_SEALS);
  constexpr int kWanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  EXPECT_EQ(seals & kWanted, kWanted);
  for (const size_t bytes : {size_t{0}, PageSize(), 3 * PageSize()}) {
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(bytes)), -1) << bytes;
    EXPECT_EQ(errno, EPERM);
  }
  struct stat file = {};
  ASSERT_EQ(::fstat(fd, &file), 0);
  EXPECT_EQ(static_cast<size_t>(file.st_size), (*buffer)->mapped_bytes());
}

TEST(SharedBufferTest, TheDescriptorIsClosedOnExec) {
  const auto buffer = MapSharedBuffer({.bytes = 1}, SystemPaths());
  ASSERT_TRUE(buffer);
  EXPECT_NE(::fcntl((*buffer)->fd(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(SharedBufferTest, NoBytesNeedNoDescriptor) {
  const auto buffer = MapSharedBuffer({.bytes = 0}, SystemPaths());
  ASSERT_TRUE(buffer);
  EXPECT_TRUE((*buffer)->bytes().empty());
  EXPECT_EQ((*buffer)->fd(), -1);
  EXPECT_EQ((*buffer)->mapped_bytes(), 0u);
}

TEST(SharedBufferTest, HugePagesAreSharedToo) {
  const size_t bytes = 4096;
  const auto buffer = MapSharedBuffer({.bytes = bytes, .huge_pages = true}, SystemPaths());
  if (!buffer) GTEST_SKIP() << "this host has no huge page free: " << buffer.error().ToText();
  EXPECT_EQ((*buffer)->bytes().size(), bytes);
  EXPECT_GT((*buffer)->mapped_bytes(), size_t{1} << 16);
  std::byte* other = MapAgain(**buffer);
  ASSERT_NE(other, nullptr);
  (*buffer)->bytes().back() = std::byte{5};
  EXPECT_EQ(other[bytes - 1], std::byte{5});
  ::munmap(other, (*buffer)->mapped_bytes());
}

TEST(SharedBufferTest, WithoutAFreeDescriptorTheLimitIsNamed) {
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto buffer = MapSharedBuffer({.bytes = 1}, SystemPaths());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().error_class, ErrorClass::kSetup);
  EXPECT_EQ(buffer.error().errno_value, EMFILE);
  EXPECT_THAT(buffer.error().message, HasSubstr("memfd_create"));
  EXPECT_THAT(buffer.error().next_step, HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace verbscope
