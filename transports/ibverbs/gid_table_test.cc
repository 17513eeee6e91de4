#include "transports/ibverbs/gid_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <cerrno>

#include "transports/ibverbs/fake_verbs.h"

namespace verbscope {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

SystemPaths Fixture() {
  SystemPaths paths;
  paths.sysfs = "transports/ibverbs/testdata/sysfs";
  return paths;
}

GidTableRequest Request() {
  return {.device = "mlx5_0",
          .port = 1,
          .link_layer = LinkLayer::kEthernet,
          .port_entries = 8,
          .device_entries = 8};
}

TEST(GidTypeTest, TheLinkLayerTellsRoceV1FromInfiniBand) {
  EXPECT_EQ(GidTypeFromSysfs("IB/RoCE v1", LinkLayer::kEthernet), "RoCE v1");
  EXPECT_EQ(GidTypeFromSysfs("IB/RoCE v1", LinkLayer::kInfiniBand), "IB");
  EXPECT_EQ(GidTypeFromSysfs("RoCE v2", LinkLayer::kEthernet), "RoCE v2");
  EXPECT_EQ(GidTypeFromVerbs(IBV_GID_TYPE_IB, LinkLayer::kInfiniBand), "IB");
  EXPECT_EQ(GidTypeFromVerbs(IBV_GID_TYPE_IB, LinkLayer::kEthernet), "RoCE v1");
  EXPECT_EQ(GidTypeFromVerbs(IBV_GID_TYPE_ROCE_V1, LinkLayer::kEthernet), "RoCE v1");
  EXPECT_EQ(GidTypeFromVerbs(IBV_GID_TYPE_ROCE_V2, LinkLayer::kEthernet), "RoCE v2");
}

TEST(GidTypeTest, ATypeOfTheFutureIsShownNotGuessed) {
  EXPECT_EQ(GidTypeFromSysfs("RoCE v3", LinkLayer::kEthernet), "RoCE v3");
  EXPECT_EQ(GidTypeFromVerbs(9, LinkLayer::kEthernet), "type 9");
}

TEST(NetdevTest, OnlyAnInterfaceOfThisNamespaceIsNamed) {
  const unsigned loopback = if_nametoindex("lo");
  ASSERT_NE(loopback, 0u);
  EXPECT_EQ(NetdevOfGid("lo", loopback), "lo");
  EXPECT_EQ(NetdevOfGid("", loopback), "lo");
  // sysfs and the ioctl both tell of interfaces elsewhere: same name, other interface.
  EXPECT_EQ(NetdevOfGid("lo", loopback + 1000), "");
  EXPECT_EQ(NetdevOfGid("no-such-if", loopback), "");
  EXPECT_EQ(NetdevOfGid("", loopback + 1000), "");
  EXPECT_EQ(NetdevOfGid("ens1f0", 0), "ens1f0");
}

TEST(GidTableTest, SysfsGivesEntriesInUseAndSkipsWhatItCannotRead) {
  const std::vector<GidEntry> gids = ReadGidTableFromSysfs(Request(), Fixture());
  ASSERT_THAT(gids, SizeIs(4));
  EXPECT_EQ(gids[0].index, 0);
  EXPECT_EQ(gids[0].type, "RoCE v1");
  EXPECT_EQ(gids[0].netdev, "ens1f0");
  EXPECT_EQ(gids[1].index, 1);
  EXPECT_EQ(gids[1].type, "RoCE v2");
  // 2 is zero, 4 is not readable as a GID.
  EXPECT_EQ(gids[2].index, 3);
  EXPECT_EQ(gids[2].value, "0000:0000:0000:0000:0000:ffff:0a01:0207");
  EXPECT_EQ(gids[2].raw.raw[12], 10);
  // Type and netdev of 5 are gone, the entry is not.
  EXPECT_EQ(gids[3].index, 5);
  EXPECT_EQ(gids[3].type, "");
  EXPECT_EQ(gids[3].netdev, "");
}

TEST(GidTableTest, AMissingTableIsAnEmptyOne) {
  GidTableRequest request = Request();
  request.device = "absent0";
  EXPECT_THAT(ReadGidTableFromSysfs(request, Fixture()), IsEmpty());
}

TEST(GidTableTest, TheLibrarysTableIsTakenPerPortInOrder) {
  FakeVerbs verbs;
  verbs.gids[2] = verbs.gids[1];
  verbs.gids[2].gid_index = 0;
  verbs.gids[2].gid_type = IBV_GID_TYPE_ROCE_V1;
  verbs.gids[3] = verbs.gids[1];
  verbs.gids[3].port_num = 2;
  verbs.gids[4] = {};
  verbs.gids[4].port_num = 1;
  const auto gids = ReadGidTable(verbs, nullptr, Request(), Fixture());
  ASSERT_THAT(gids, SizeIs(2));
  EXPECT_EQ(gids[0].index, 0);
  EXPECT_EQ(gids[0].type, "RoCE v1");
  EXPECT_EQ(gids[1].index, 1);
  EXPECT_EQ(gids[1].value, "0000:0000:0000:0000:0000:ffff:0a00:0001");
}

TEST(GidTableTest, WithoutTheLibraryCallSysfsServes) {
  for (const int code : {EOPNOTSUPP, ENOSYS, EINVAL, EIO}) {
    FakeVerbs verbs;
    verbs.fail["QueryGidTable"] = code;
    EXPECT_THAT(ReadGidTable(verbs, nullptr, Request(), Fixture()), SizeIs(4)) << code;
  }
}

}  // namespace
}  // namespace verbscope
