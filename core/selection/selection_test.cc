#include "core/selection/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/selection/testing.h"

namespace verbscope {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const ControlPath kControl = {
    .local_address = "10.0.3.1", .remote_address = "10.0.3.2", .netdev = "v3", .prefix_length = 24};

LocalSettings Named(std::string device, std::optional<int> port = std::nullopt) {
  LocalSettings settings;
  settings.device = std::move(device);
  settings.ib_port = port;
  return settings;
}

// Down, unusable, active in another network, the right one, InfiniBand.
std::vector<DeviceSummary> FiveDevices() {
  Error denied;
  denied.error_class = ErrorClass::kSetup;
  denied.message = "open(/dev/infiniband/uverbs1) failed: Permission denied";
  denied.next_step = "give this user access to it";
  return {
      UsableDevice("rxe0", {EthernetPort({V2(0, "10.0.1.1", "v1")}, "DOWN")}),
      UnusableDevice("mlx5_1", denied),
      UsableDevice("rxe2", {EthernetPort({V2(0, "10.0.2.1", "v2")})}),
      UsableDevice("rxe3", {EthernetPort({V2(0, "fe80::3", "v3"), V2(1, "10.0.3.1", "v3")})}),
      UsableDevice("mlx5_4", {InfiniBandPort(4, {Gid(0, "fe80::4", "IB", "")})}),
  };
}

TEST(ChooseDeviceTest, WithoutAnyDeviceTheNextStepsAreNamed) {
  const auto choice = ChooseDevice({}, {}, kControl);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().error_class, ErrorClass::kSetup);
  EXPECT_EQ(choice.error().message, "no RDMA device on this host");
  EXPECT_THAT(choice.error().next_step, HasSubstr("rdma link add rxe0 type rxe netdev"));
  EXPECT_THAT(choice.error().next_step, HasSubstr("verbscope devices"));
}

TEST(ChooseDeviceTest, NetdevOfTheControlAddressDecides) {
  const auto choice = ChooseDevice(FiveDevices(), {}, kControl);
  ASSERT_TRUE(choice) << choice.error().ToText();
  EXPECT_EQ(choice->device, "rxe3");
  EXPECT_EQ(choice->port, 1);
  EXPECT_THAT(choice->reason, HasSubstr("netdev v3"));
  EXPECT_THAT(choice->notice, IsEmpty());
}

TEST(ChooseDeviceTest, NetdevGoesBeforeSubnetWhateverTheOrder) {
  const auto choice =
      ChooseDevice({UsableDevice("subnet", {EthernetPort({V2(0, "10.0.3.9", "v9")})}),
                    UsableDevice("netdev", {EthernetPort({V2(0, "fe80::3", "v3")})})},
                   {}, kControl);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->device, "netdev");
}

TEST(ChooseDeviceTest, SubnetDecidesWhenNoDeviceHasTheNetdev) {
  ControlPath path = kControl;
  path.netdev = "br0";
  const auto choice = ChooseDevice(FiveDevices(), {}, path);
  ASSERT_TRUE(choice) << choice.error().ToText();
  EXPECT_EQ(choice->device, "rxe3");
  EXPECT_THAT(choice->reason, HasSubstr("subnet"));
}

TEST(ChooseDeviceTest, PrefixLengthIsRespectedAndAssumedWhenUnknown) {
  ControlPath path = {.local_address = "10.0.9.1", .netdev = "br0", .prefix_length = 0};
  EXPECT_FALSE(ChooseDevice(FiveDevices(), {}, path));  // /24 assumed: no 10.0.9.0/24 here
  path.prefix_length = 16;
  const auto choice = ChooseDevice(FiveDevices(), {}, path);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->device, "rxe2");  // rxe0 matches too, but is down
}

TEST(ChooseDeviceTest, Ipv6ControlAddressMatchesAGlobalGid) {
  const ControlPath path = {.local_address = "2001:db8:0:5::1", .netdev = "br0"};
  auto devices = FiveDevices();
  devices.push_back(UsableDevice("rxe5", {EthernetPort({V2(1, "2001:db8:0:5::2", "v5")})}));
  const auto choice = ChooseDevice(devices, {}, path);
  ASSERT_TRUE(choice) << choice.error().ToText();
  EXPECT_EQ(choice->device, "rxe5");
}

// Every port has a GID in fe80::/64, so a link-local control address says nothing by its subnet.
TEST(ChooseDeviceTest, LinkLocalSubnetIsNoMatch) {
  const ControlPath path = {.local_address = "fe80::99%br0", .netdev = "br0"};
  EXPECT_FALSE(ChooseDevice(FiveDevices(), {}, path));
}

TEST(ChooseDeviceTest, WithoutAMatchAllDevicesAreListedAndNoneTaken) {
  const ControlPath path = {.local_address = "172.16.0.1", .netdev = "mgmt0"};
  const auto choice = ChooseDevice(FiveDevices(), {}, path);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().error_class, ErrorClass::kSetup);
  EXPECT_THAT(choice.error().message, HasSubstr("172.16.0.1"));
  EXPECT_THAT(choice.error().message, HasSubstr("mgmt0"));
  for (const char* name : {"rxe0", "mlx5_1", "rxe2", "rxe3", "mlx5_4"}) {
    EXPECT_THAT(choice.error().cause, HasSubstr(name));
  }
  EXPECT_THAT(choice.error().next_step, HasSubstr("--device rxe2"));  // the first active one
}

TEST(ChooseDeviceTest, SoleDeviceInAnotherNetworkIsOfferedNotTaken) {
  const auto choice =
      ChooseDevice({UsableDevice("rxe2", {EthernetPort({V2(0, "10.0.2.1", "v2")})})}, {}, kControl);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().next_step, HasSubstr("--device rxe2 --ib-port 1"));
}

TEST(ChooseDeviceTest, SoleDeviceInTheControlNetworkIsTaken) {
  const auto choice =
      ChooseDevice({UsableDevice("rxe3", {EthernetPort({V2(0, "10.0.3.1", "v3")})})}, {}, kControl);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->device, "rxe3");
}

TEST(ChooseDeviceTest, MatchingPortThatIsDownIsNamedWithItsFix) {
  const auto choice =
      ChooseDevice({UsableDevice("rxe3", {EthernetPort({V2(0, "10.0.3.1", "v3")}, "DOWN")}),
                    UsableDevice("rxe2", {EthernetPort({V2(0, "10.0.2.1", "v2")})})},
                   {}, kControl);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().cause, HasSubstr("port 1 of rxe3 would match, but it is DOWN"));
  EXPECT_THAT(choice.error().next_step, HasSubstr("ip link set v3 up"));
  EXPECT_THAT(choice.error().next_step, HasSubstr("--device rxe2"));
}

TEST(ChooseDeviceTest, OnOneHostTheFirstActivePortIsTaken) {
  for (const ControlPath& path :
       {ControlPath{.loopback = true},
        ControlPath{.local_address = "127.0.0.1", .remote_address = "127.0.0.1", .netdev = "lo"}}) {
    const auto choice = ChooseDevice(FiveDevices(), {}, path);
    ASSERT_TRUE(choice) << choice.error().ToText();
    EXPECT_EQ(choice->device, "rxe2");  // rxe0 is down, mlx5_1 cannot be used
    EXPECT_THAT(choice->notice, IsEmpty());
  }
}

TEST(ChooseDeviceTest, OnOneHostWithAllPortsDownNothingIsTaken) {
  const auto choice =
      ChooseDevice({UsableDevice("rxe0", {EthernetPort({V2(0, "10.0.1.1", "v1")}, "DOWN")})}, {},
                   ControlPath{.loopback = true});
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message, "no RDMA device has an active port");
  EXPECT_THAT(choice.error().next_step, HasSubstr("ip link set v1 up"));
}

TEST(ChooseDeviceTest, OptionPicksAnyActiveDeviceAndWarnsOfAnotherNetwork) {
  const auto choice = ChooseDevice(FiveDevices(), Named("rxe2"), kControl);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->device, "rxe2");
  EXPECT_THAT(choice->notice, HasSubstr("10.0.3.1 on netdev v3"));
  EXPECT_THAT(choice->notice, HasSubstr("netdev v2"));
}

TEST(ChooseDeviceTest, NoWarningForTheControlNetworkNorForInfiniBand) {
  EXPECT_THAT(ChooseDevice(FiveDevices(), Named("rxe3"), kControl)->notice, IsEmpty());
  EXPECT_THAT(ChooseDevice(FiveDevices(), Named("mlx5_4"), kControl)->notice, IsEmpty());
}

TEST(ChooseDeviceTest, UnknownNameIsRefusedWithTheExistingOnes) {
  const auto choice = ChooseDevice(FiveDevices(), Named("mlx5_9"), kControl);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message, "there is no RDMA device mlx5_9");
  EXPECT_THAT(choice.error().cause, HasSubstr("rxe3 port 1 ACTIVE Ethernet MTU 1024 netdev v3"));
}

TEST(ChooseDeviceTest, NameOnAHostWithoutDevicesSaysSo) {
  const auto choice = ChooseDevice({}, Named("mlx5_0"), kControl);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message, "no RDMA device on this host, so none named mlx5_0");
}

DeviceSummary Soft(std::string name = "soft") {
  DeviceSummary device = UsableDevice(std::move(name), {EthernetPort({V2(0, "127.0.0.1", "lo")})});
  device.info->provider = "soft";
  return device;
}

std::vector<DeviceSummary> With(std::vector<DeviceSummary> devices, DeviceSummary last) {
  devices.push_back(std::move(last));
  return devices;
}

TEST(ChooseDeviceTest, LoopbackWithoutDevicesTakesTheSoftOneAndSaysSo) {
  const auto choice = ChooseDevice({Soft()}, {}, ControlPath{.loopback = true});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->device, "soft");
  EXPECT_THAT(choice->notice, HasSubstr("no RDMA device on this host"));
}

TEST(ChooseDeviceTest, LoopbackPrefersARealDeviceWithAnActivePort) {
  const auto choice = ChooseDevice(With(FiveDevices(), Soft()), {}, ControlPath{.loopback = true});
  ASSERT_TRUE(choice);
  EXPECT_NE(choice->device, "soft");
}

TEST(ChooseDeviceTest, LoopbackWithEveryPortDownTakesTheSoftOneAndNamesThePorts) {
  const auto choice = ChooseDevice(
      {UsableDevice("rxe0", {EthernetPort({V2(0, "10.0.1.1", "v1")}, "DOWN")}), Soft()}, {},
      ControlPath{.loopback = true});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->device, "soft");
  EXPECT_THAT(choice->notice, HasSubstr("rxe0 port 1 DOWN"));
}

TEST(ChooseDeviceTest, AnotherHostIsNeverMeasuredWithTheSoftDeviceUnasked) {
  const auto choice = ChooseDevice({Soft()}, {}, kControl);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message, "no RDMA device on this host");
  EXPECT_THAT(choice.error().next_step, HasSubstr("--device soft"));
}

TEST(ChooseDeviceTest, SoftDeviceIsTakenByNameWithAndWithoutKeys) {
  for (const char* name : {"soft", "soft:drop=1%"}) {
    const auto choice = ChooseDevice(With(FiveDevices(), Soft(name)), Named(name), kControl);
    ASSERT_TRUE(choice);
    EXPECT_EQ(choice->device, name);
  }
}

TEST(RequireUsableDeviceTest, SoftCountsInLoopbackOrByNameOnly) {
  EXPECT_TRUE(RequireUsableDevice({Soft()}, {}, /*loopback=*/true));
  EXPECT_TRUE(RequireUsableDevice({Soft()}, Named("soft"), /*loopback=*/false));
  EXPECT_FALSE(RequireUsableDevice({Soft()}, {}, /*loopback=*/false));
  EXPECT_FALSE(RequireUsableDevice({}, {}, /*loopback=*/true));
}

TEST(ChooseDeviceTest, NamedDeviceThatIsDownIsRefusedWithStateNetdevAndFix) {
  const auto choice = ChooseDevice(FiveDevices(), Named("rxe0"), kControl);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message, "port 1 of rxe0 is DOWN, not ACTIVE");
  EXPECT_THAT(choice.error().cause, HasSubstr("v1"));
  EXPECT_THAT(choice.error().next_step, HasSubstr("ip link set v1 up"));
}

TEST(ChooseDeviceTest, NamedInfiniBandPortInInitPointsToTheSubnetManager) {
  PortInfo port = InfiniBandPort(0, {});
  port.state = "INIT";
  port.active = false;
  const auto choice = ChooseDevice({UsableDevice("mlx5_0", {port})}, Named("mlx5_0"), kControl);
  ASSERT_FALSE(choice);
  EXPECT_THAT(choice.error().message, HasSubstr("INIT"));
  EXPECT_THAT(choice.error().next_step, HasSubstr("subnet manager"));
}

TEST(ChooseDeviceTest, NamedDeviceThatCannotBeOpenedKeepsItsReason) {
  const auto choice = ChooseDevice(FiveDevices(), Named("mlx5_1"), kControl);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message, "device mlx5_1 cannot be used");
  EXPECT_THAT(choice.error().cause, HasSubstr("Permission denied"));
  EXPECT_EQ(choice.error().next_step, "give this user access to it");
}

class TwoPortDeviceTest : public testing::Test {
 protected:
  const std::vector<DeviceSummary> devices_ = {UsableDevice(
      "mlx4_0",
      {EthernetPort({V2(0, "10.0.1.1", "v1")}, "DOWN"), EthernetPort({V2(0, "10.0.2.1", "v2")}),
       EthernetPort({V2(0, "10.0.3.1", "v3")})})};
};

TEST_F(TwoPortDeviceTest, FirstActivePortOfANamedDevice) {
  EXPECT_EQ(ChooseDevice(devices_, Named("mlx4_0"), kControl)->port, 2);
}

TEST_F(TwoPortDeviceTest, PortOfTheControlNetdevWhenNothingIsNamed) {
  EXPECT_EQ(ChooseDevice(devices_, {}, kControl)->port, 3);
}

TEST_F(TwoPortDeviceTest, PortOptionIsObeyed) {
  EXPECT_EQ(ChooseDevice(devices_, Named("mlx4_0", 3), kControl)->port, 3);
  EXPECT_EQ(ChooseDevice(devices_, Named("", 3), ControlPath{.loopback = true})->port, 3);
}

TEST_F(TwoPortDeviceTest, PortOptionNeverFallsThroughToAnotherPort) {
  const auto down = ChooseDevice(devices_, Named("mlx4_0", 1), kControl);
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().message, "port 1 of mlx4_0 is DOWN, not ACTIVE");
  EXPECT_FALSE(ChooseDevice(devices_, Named("", 2), kControl));  // the control netdev is on port 3
}

TEST_F(TwoPortDeviceTest, MissingPortIsRefusedNamingThoseThatExist) {
  const auto choice = ChooseDevice(devices_, Named("mlx4_0", 7), kControl);
  ASSERT_FALSE(choice);
  EXPECT_EQ(choice.error().message, "device mlx4_0 has no port 7");
  EXPECT_THAT(choice.error().cause, HasSubstr("mlx4_0 port 2 ACTIVE"));
}

TEST(DescribeChoicesTest, OneLineWithStateLinkLayerMtuAndNetdev) {
  const std::string text = DescribeChoices(FiveDevices());
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  EXPECT_THAT(text, HasSubstr("rxe0 port 1 DOWN Ethernet MTU 1024 netdev v1; mlx5_1 (cannot be"));
  EXPECT_THAT(text, HasSubstr("mlx5_4 port 1 ACTIVE InfiniBand MTU 4096 netdev unknown"));
  EXPECT_EQ(DescribeChoices({}), "none");
}

}  // namespace
}  // namespace verbscope
