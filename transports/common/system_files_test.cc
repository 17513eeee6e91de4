#include "transports/common/system_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "transports/common/temp_tree.h"

namespace verbscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SystemFilesTest, TextLosesItsLineEnd) {
  const TempTree tree;
  EXPECT_EQ(ReadText(tree.Write("hca_type", "MT4123\n")), "MT4123");
}

TEST(SystemFilesTest, AnEmptyFileIsEmptyTextAndAMissingOneIsNothing) {
  const TempTree tree;
  EXPECT_EQ(ReadText(tree.Write("fw_ver", "")), "");
  EXPECT_EQ(ReadText(tree.Write("blank", " \n")), "");
  EXPECT_FALSE(ReadText(tree.root() + "/no/such/file"));
  EXPECT_FALSE(ReadText(tree.root()));  // a folder opens, but does not read
}

TEST(SystemFilesTest, ZeroBytesAtTheEndAreNoText) {
  const TempTree tree;
  EXPECT_EQ(ReadText(tree.Write("zero_bytes", std::string("name\n\0\0", 7))), "name");
}

TEST(SystemFilesTest, ReadsWholeFilesLongerThanOneRead) {
  const TempTree tree;
  const std::string text(10000, 'x');
  EXPECT_EQ(ReadText(tree.Write("long", text + "\n")), text);
}

TEST(SystemFilesTest, ANumberIsTheWholeTextOrNothing) {
  const TempTree tree;
  EXPECT_EQ(ReadInt(tree.Write("numa_node", "-1\n")), -1);
  EXPECT_FALSE(ReadInt(tree.Write("node_type", "1: CA\n")));
  EXPECT_FALSE(ReadInt(tree.Write("empty", "")));
  EXPECT_FALSE(ReadInt(tree.root() + "/no/such/file"));
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
  const TempTree tree;
  for (const char* name : {"uverbs1", "uverbs0", ".hidden"}) tree.Write(name, "");
  EXPECT_THAT(ListFolder(tree.root()), ElementsAre("uverbs0", "uverbs1"));
  EXPECT_THAT(ListFolder(tree.root() + "/no/such/folder"), IsEmpty());
}

TEST(SystemFilesTest, PathsFollowTheRoots) {
  const SystemPaths paths = {.sysfs = "/s", .dev = "/d", .proc = "/p"};
  EXPECT_EQ(paths.Port("rxe0", 2), "/s/class/infiniband/rxe0/ports/2");
  EXPECT_EQ(paths.UverbsNode("uverbs3"), "/d/infiniband/uverbs3");
}

}  // namespace
}  // namespace verbscope
