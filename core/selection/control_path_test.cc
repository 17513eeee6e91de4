#include "core/selection/control_path.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(ControlPathTest, LoopbackAddressesMeanOneHost) {
  EXPECT_TRUE(ControlPath{.loopback = true}.same_host());
  EXPECT_TRUE(
      (ControlPath{.local_address = "127.0.0.1", .remote_address = "127.0.0.2"}).same_host());
  EXPECT_TRUE((ControlPath{.remote_address = "::1"}).same_host());
  EXPECT_FALSE(
      (ControlPath{.local_address = "10.0.0.1", .remote_address = "10.0.0.2"}).same_host());
  EXPECT_FALSE(ControlPath{}.same_host());
}

TEST(FindNetdevTest, LoopbackAddressBelongsToTheLoopbackNetdev) {
  const auto netdev = FindNetdev("127.0.0.1");
  ASSERT_TRUE(netdev) << netdev.error().ToText();
  EXPECT_EQ(netdev->name, "lo");
  EXPECT_EQ(netdev->prefix_length, 8);
}

TEST(FindNetdevTest, EveryAddressOfTheLoopbackSubnetIsLocal) {
  const auto netdev = FindNetdev("127.0.0.5");
  ASSERT_TRUE(netdev) << netdev.error().ToText();
  EXPECT_EQ(netdev->name, "lo");
}

TEST(FindNetdevTest, ZoneNarrowsToItsNetdev) {
  const auto netdev = FindNetdev("127.0.0.1%lo");
  ASSERT_TRUE(netdev) << netdev.error().ToText();
  EXPECT_EQ(netdev->name, "lo");
  EXPECT_FALSE(FindNetdev("127.0.0.1%no-such-netdev"));
}

TEST(FindNetdevTest, ForeignAddressIsNamedInTheError) {
  // TEST-NET-3 of RFC 5737 is never assigned to a host.
  const auto netdev = FindNetdev("203.0.113.77");
  ASSERT_FALSE(netdev);
  EXPECT_EQ(netdev.error().error_class, ErrorClass::kSetup);
  EXPECT_NE(netdev.error().message.find("203.0.113.77"), std::string::npos);
}

TEST(FindNetdevTest, NameIsRefusedAsNoAddress) {
  const auto netdev = FindNetdev("localhost");
  ASSERT_FALSE(netdev);
  EXPECT_EQ(netdev.error().message, "\"localhost\" is no numeric IP address");
}

}  // namespace
}  // namespace verbscope
