#include "core/selection/path_mtu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbscope {
namespace {

using testing::HasSubstr;

TEST(PathMtuTest, SmallerPortDecidesWhicheverSideItIs) {
  EXPECT_EQ(ChoosePathMtu(4096, 1024, 0).value(), 1024u);
  EXPECT_EQ(ChoosePathMtu(1024, 4096, 0).value(), 1024u);
  EXPECT_EQ(ChoosePathMtu(256, 256, 0).value(), 256u);
}

TEST(PathMtuTest, OptionMayLowerItDownToTheSmallestCode) {
  for (uint32_t asked : {256u, 512u, 1024u, 2048u}) {
    EXPECT_EQ(ChoosePathMtu(2048, 4096, asked).value(), asked);
  }
}

TEST(PathMtuTest, LargerThanASidesPortIsRefusedNamingBoth) {
  const auto mtu = ChoosePathMtu(4096, 1024, 2048);
  ASSERT_FALSE(mtu);
  EXPECT_EQ(mtu.error().error_class, ErrorClass::kSetup);
  EXPECT_THAT(mtu.error().message, HasSubstr("--mtu 2048"));
  EXPECT_THAT(mtu.error().cause, HasSubstr("4096"));
  EXPECT_THAT(mtu.error().cause, HasSubstr("1024"));
  EXPECT_THAT(mtu.error().next_step, HasSubstr("--mtu 1024"));
}

TEST(PathMtuTest, OtherValuesAreRefused) {
  for (uint32_t asked : {1u, 128u, 1500u, 1023u, 8192u}) {
    const auto mtu = ChoosePathMtu(4096, 4096, asked);
    ASSERT_FALSE(mtu) << asked;
    EXPECT_THAT(mtu.error().message, HasSubstr(std::to_string(asked)));
  }
}

TEST(PathMtuTest, PortWithoutAUsableMtuIsNamed) {
  const auto here = ChoosePathMtu(0, 1024, 0);
  ASSERT_FALSE(here);
  EXPECT_THAT(here.error().message, HasSubstr("the local port"));
  const auto there = ChoosePathMtu(1024, 1500, 256);
  ASSERT_FALSE(there);
  EXPECT_THAT(there.error().message, HasSubstr("the peer's port"));
}

}  // namespace
}  // namespace verbscope
