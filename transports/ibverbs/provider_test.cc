#include "transports/ibverbs/provider.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <string>

#include "transports/ibverbs/fake_verbs.h"

namespace verbscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class IbverbsProviderTest : public ::testing::Test {
 protected:
  // A sysfs without devices, so that a list holds what the fake library offers.
  IbverbsProvider Provider(bool with_sysfs_devices = false) {
    IbverbsOptions options;
    options.paths = system_.paths;
    if (!with_sysfs_devices) options.paths.sysfs = "no-such-folder";
    return IbverbsProvider(options, verbs_);
  }

  FakeSystem system_;
  FakeVerbs verbs_;
};

TEST(IbverbsOfThisHostTest, AHostWithoutKernelSupportHasAnEmptyListAndPrintsNothing) {
  if (std::filesystem::exists("/sys/class/infiniband")) GTEST_SKIP() << "this host has devices";
  ::testing::internal::CaptureStdout();
  IbverbsProvider provider;
  const auto list = provider.List();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  ASSERT_TRUE(list) << list.error().ToText();
  EXPECT_THAT(*list, IsEmpty());
  const auto device = provider.Open("mlx5_0");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().error_class, ErrorClass::kSetup);
  EXPECT_THAT(device.error().next_step, HasSubstr("verbscope devices"));
}

TEST_F(IbverbsProviderTest, NoKernelSupportIsAnEmptyList) {
  for (const int code : {ENOSYS, ENOENT}) {
    verbs_.list_errno = code;
    const auto list = Provider().List();
    ASSERT_TRUE(list);
    EXPECT_THAT(*list, IsEmpty());
  }
}

TEST_F(IbverbsProviderTest, AListingThatFailsIsAnError) {
  verbs_.list_errno = EPERM;
  const auto list = Provider().List();
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message, HasSubstr("ibv_get_device_list"));
  EXPECT_FALSE(Provider().Open("mlx5_0"));
}

TEST_F(IbverbsProviderTest, EachDeviceHasItsInfoOrItsError) {
  verbs_.AddDevice("mlx5_0", "uverbs0");
  verbs_.AddDevice("mlx5_1", "uverbs1");
  ibv_device* iwarp = verbs_.AddDevice("siw0", "uverbs2");
  iwarp->node_type = IBV_NODE_RNIC;
  iwarp->transport_type = IBV_TRANSPORT_IWARP;
  system_.AddDeviceNode("uverbs0");
  const auto list = Provider().List();
  ASSERT_TRUE(list);
  ASSERT_THAT(*list, SizeIs(3));
  EXPECT_EQ((*list)[0].name, "mlx5_0");
  ASSERT_TRUE((*list)[0].info);
  EXPECT_THAT((*list)[0].info->ports, SizeIs(1));
  EXPECT_FALSE((*list)[0].error);
  EXPECT_EQ((*list)[1].name, "mlx5_1");
  EXPECT_FALSE((*list)[1].info);
  ASSERT_TRUE((*list)[1].error);
  EXPECT_EQ((*list)[1].error->errno_value, ENOENT);
  ASSERT_TRUE((*list)[2].error);
  EXPECT_THAT((*list)[2].error->message, HasSubstr("iWARP"));
  EXPECT_EQ(verbs_.live_objects(), 0u) << "a listed device was not closed";
}

TEST_F(IbverbsProviderTest, OpensTheDeviceOfTheName) {
  verbs_.AddDevice("mlx5_0", "uverbs0");
  verbs_.AddDevice("mlx5_1", "uverbs1");
  system_.AddDeviceNode("uverbs1");
  const auto device = Provider().Open("mlx5_1");
  ASSERT_TRUE(device) << device.error().ToText();
  EXPECT_EQ((*device)->info().name, "mlx5_1");
}

TEST_F(IbverbsProviderTest, AWrongNameIsAnsweredWithTheRightOnes) {
  verbs_.AddDevice("mlx5_0", "uverbs0");
  verbs_.AddDevice("rxe0", "uverbs1");
  const auto device = Provider().Open("mlx5_9");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message, "there is no RDMA device named mlx5_9");
  EXPECT_EQ(device.error().cause, "the devices here are mlx5_0, rxe0");
}

TEST_F(IbverbsProviderTest, DevicesThatTheLibraryLeavesOutSayWhy) {
  verbs_.AddDevice("siw0", "uverbs7");
  system_.AddDeviceNode("uverbs1");  // of renamed0; mlx5_0 has none, as in a container
  const auto list = Provider(/*with_sysfs_devices=*/true).List();
  ASSERT_TRUE(list);
  EXPECT_EQ((*list)[0].name, "siw0");
  std::map<std::string, std::string> causes;
  for (const DeviceSummary& row : *list) {
    ASSERT_TRUE(row.error) << row.name;
    EXPECT_TRUE(causes.emplace(row.name, row.error->cause).second) << row.name << " twice";
  }
  EXPECT_THAT(causes["mlx5_0"], AllOf(HasSubstr("uverbs0 is missing"), HasSubstr("container")));
  EXPECT_THAT(causes["renamed0"], HasSubstr("no provider library"));
  EXPECT_THAT(causes["newnic_0"], HasSubstr("ib_uverbs is not loaded"));
}

TEST_F(IbverbsProviderTest, OpeningADeviceThatTheLibraryLeavesOutSaysWhy) {
  const auto device = Provider(/*with_sysfs_devices=*/true).Open("mlx5_0");
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().message, HasSubstr("mlx5_0 exists in the kernel"));
  EXPECT_THAT(device.error().next_step, HasSubstr("/dev/infiniband"));
}

}  // namespace
}  // namespace verbscope
