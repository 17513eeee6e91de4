#include "transports/ibverbs/system_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace verbscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kSysfs = "transports/ibverbs/testdata/sysfs";

TEST(SystemFilesTest, TextLosesItsLineEnd) {
  EXPECT_EQ(ReadText(kSysfs + "/class/infiniband/mlx5_0/hca_type"), "MT4123");
}

TEST(SystemFilesTest, AnEmptyFileIsEmptyTextAndAMissingOneIsNothing) {
  EXPECT_EQ(ReadText(kSysfs + "/class/infiniband/renamed0/fw_ver"), "");
  EXPECT_FALSE(ReadText(kSysfs + "/no/such/file"));
  EXPECT_FALSE(ReadText(kSysfs + "/class"));  // a folder opens, but does not read
}

TEST(SystemFilesTest, ZeroBytesAtTheEndAreNoText) {
  const std::string path = ::testing::TempDir() + "/zero_bytes";
  std::ofstream(path) << std::string("name\n\0\0", 7);
  EXPECT_EQ(ReadText(path), "name");
}

TEST(SystemFilesTest, ReadsWholeFilesLongerThanOneRead) {
  const std::string path = ::testing::TempDir() + "/long";
  const std::string text(10000, 'x');
  std::ofstream(path) << text << "\n";
  EXPECT_EQ(ReadText(path), text);
}

TEST(SystemFilesTest, ANumberIsTheWholeTextOrNothing) {
  EXPECT_EQ(ReadInt(kSysfs + "/class/infiniband/mlx5_0/device/numa_node"), 1);
  EXPECT_FALSE(ReadInt(kSysfs + "/class/infiniband/mlx5_0/node_type"));  // "1: CA"
  EXPECT_FALSE(ReadInt(kSysfs + "/no/such/file"));
}

TEST(SystemFilesTest, FindsTheValueOfAWholeKey) {
  const std::string text = "HugePages_Total:   8\nHugePages_Free:    3\nHugepagesize:  2048 kB";
  EXPECT_EQ(ValueOfKey(text, "HugePages_Free", ':'), "3");
  EXPECT_EQ(ValueOfKey(text, "Hugepagesize", ':'), "2048 kB");
  EXPECT_FALSE(ValueOfKey(text, "HugePages", ':'));
  EXPECT_FALSE(ValueOfKey(text, "HugePages_Free", '='));
  EXPECT_FALSE(ValueOfKey("", "Key", ':'));
  EXPECT_EQ(ValueOfKey("DRIVER=\n", "DRIVER", '='), "");
}

TEST(SystemFilesTest, FoldersAreListedInOrder) {
  EXPECT_THAT(ListFolder(kSysfs + "/class/infiniband_verbs"), ElementsAre("uverbs0", "uverbs1"));
  EXPECT_THAT(ListFolder(kSysfs + "/no/such/folder"), IsEmpty());
}

TEST(SystemFilesTest, PathsFollowTheRoots) {
  const SystemPaths paths = {.sysfs = "/s", .dev = "/d", .proc = "/p"};
  EXPECT_EQ(paths.Port("rxe0", 2), "/s/class/infiniband/rxe0/ports/2");
  EXPECT_EQ(paths.UverbsNode("uverbs3"), "/d/infiniband/uverbs3");
}

}  // namespace
}  // namespace verbscope
