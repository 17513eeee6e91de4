#include "transports/ibverbs/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbscope {
namespace {

using ::testing::HasSubstr;

DeviceIdentity Identity(std::string_view name) {
  SystemPaths paths;
  paths.sysfs = "transports/ibverbs/testdata/sysfs";
  return ReadIdentity(paths, name);
}

TEST(IdentityTest, TheBusDriverNamesTheProvider) {
  const DeviceIdentity mlx5 = Identity("mlx5_0");
  EXPECT_EQ(mlx5.provider, "mlx5");
  EXPECT_EQ(mlx5.kind, DeviceKind::kHardware);
  EXPECT_EQ(mlx5.numa_node, 1);
}

TEST(IdentityTest, RxeIsKnownUnderAnyNameAndWithAChangedDescription) {
  const DeviceIdentity rxe = Identity("renamed0");
  EXPECT_EQ(rxe.provider, "rxe");
  EXPECT_EQ(rxe.kind, DeviceKind::kSoftware);
  EXPECT_EQ(rxe.numa_node, -1);
}

TEST(IdentityTest, RxeOfAnOldKernelIsNotTakenForItsNetworkCard) {
  const DeviceIdentity rxe = Identity("rxe_old");
  EXPECT_EQ(rxe.provider, "rxe");
  EXPECT_EQ(rxe.kind, DeviceKind::kSoftware);
  EXPECT_EQ(rxe.numa_node, 0);
}

TEST(IdentityTest, SiwIsSoftwareAlthoughItShowsAnEthernetCard) {
  EXPECT_EQ(Identity("siw0").provider, "siw");
  EXPECT_EQ(Identity("siw0").kind, DeviceKind::kSoftware);
}

TEST(IdentityTest, ADriverNotInTheTableKeepsItsOwnName) {
  EXPECT_EQ(Identity("newnic_0").provider, "newnic_core");
  EXPECT_EQ(Identity("newnic_0").kind, DeviceKind::kHardware);
}

TEST(IdentityTest, ADeviceBehindNoBusIsSoftwareOfUnknownMake) {
  EXPECT_EQ(Identity("virtual0").provider, "");
  EXPECT_EQ(Identity("virtual0").kind, DeviceKind::kSoftware);
}

TEST(IdentityTest, ADeviceThatSysfsDoesNotShowIsNotCalledSoftware) {
  EXPECT_EQ(Identity("absent0").provider, "");
  EXPECT_EQ(Identity("absent0").kind, DeviceKind::kHardware);
  EXPECT_EQ(Identity("absent0").numa_node, -1);
}

TEST(RefusalTest, InfiniBandAndRoceAreTaken) {
  EXPECT_FALSE(RefusalOf("mlx5_0", IBV_NODE_CA, IBV_TRANSPORT_IB));
}

TEST(RefusalTest, IwarpIsRefusedByName) {
  for (const auto transport : {IBV_TRANSPORT_IWARP, IBV_TRANSPORT_IB}) {
    const auto error = RefusalOf("siw0", IBV_NODE_RNIC, transport);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->error_class, ErrorClass::kSetup);
    EXPECT_THAT(error->message, HasSubstr("siw0 is an iWARP device"));
    EXPECT_FALSE(error->next_step.empty());
  }
}

TEST(RefusalTest, OtherTransportsAreRefused) {
  EXPECT_THAT(RefusalOf("usnic_0", IBV_NODE_USNIC_UDP, IBV_TRANSPORT_USNIC_UDP)->message,
              HasSubstr("usNIC"));
  EXPECT_THAT(RefusalOf("efa_0", IBV_NODE_UNSPECIFIED, IBV_TRANSPORT_UNSPECIFIED)->message,
              HasSubstr("efa_0 has a transport"));
  EXPECT_TRUE(RefusalOf("x", IBV_NODE_UNKNOWN, IBV_TRANSPORT_UNKNOWN));
}

}  // namespace
}  // namespace verbscope
