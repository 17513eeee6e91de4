#include "core/doctor/host_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "transports/common/temp_tree.h"

namespace verbscope {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(HostTreeTest, ReadsBelowItsRootOnly) {
  const TempTree folder;
  folder.Write("sys/number", " 12\n");
  const HostTree tree(folder.root());
  EXPECT_EQ(tree.Text("/sys/number"), " 12");
  EXPECT_TRUE(tree.Exists("/sys"));
  EXPECT_FALSE(tree.Exists("/proc/self"));
  EXPECT_THAT(tree.List("/sys"), ElementsAre("number"));
}

TEST(HostTreeTest, SaysWhyAFileHasNoText) {
  const TempTree folder;
  folder.Write("empty", "");
  const HostTree tree(folder.root());
  EXPECT_EQ(tree.Why("/missing"), "no such file");
  EXPECT_EQ(tree.Why("/empty"), "empty");
  EXPECT_EQ(tree.Why("/"), "cannot be read");
}

TEST(HostTreeTest, APipeIsNotWaitedFor) {
  const TempTree folder;
  ASSERT_EQ(::mkfifo((folder.root() + "/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(HostTree(folder.root()).Text("/pipe"));
}

TEST(HostTreeTest, NumbersAreWholeAndDecimal) {
  const TempTree folder;
  for (const char* bad : {"", "x", "1x", "0x1", "99999999999", "1.5"}) {
    folder.Write("number", bad);
    EXPECT_FALSE(HostTree(folder.root()).Number("/number")) << bad;
  }
  folder.Write("number", "-1\n");
  EXPECT_EQ(HostTree(folder.root()).Number("/number"), -1);
}

TEST(CpusOfTest, RangesAndRubbish) {
  EXPECT_THAT(CpusOf("0-2,8"), ElementsAre(0, 1, 2, 8));
  EXPECT_THAT(CpusOf("5"), ElementsAre(5));
  for (const char* bad : {"", "x", "3-1", "-1", "1-", "0-99999999", "1,,x"}) {
    EXPECT_THAT(CpusOf(bad), IsEmpty()) << bad;
  }
}

TEST(LeadingNumberTest, TakesTheNumberInFront) {
  EXPECT_EQ(LeadingNumber("16.0 GT/s PCIe"), 16.0);
  EXPECT_EQ(LeadingNumber("8"), 8.0);
  EXPECT_FALSE(LeadingNumber("Unknown"));
  EXPECT_FALSE(LeadingNumber(""));
}

}  // namespace
}  // namespace verbscope
