#include "core/selection/gid_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/selection/testing.h"

namespace verbscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto kAny = std::nullopt;
const ControlPath kNoControl;

// The table a common RoCE adapter has: each address as v1 and as v2, link-local first.
std::vector<GidEntry> UsualTable(const std::string& link_local, const std::string& ipv4) {
  return {V1(0, link_local), V2(1, link_local), V1(2, ipv4), V2(3, ipv4)};
}

struct PairCase {
  const char* name;
  std::vector<GidEntry> local;
  std::vector<GidEntry> remote;
  ControlPath control;
  int expected_local;
  int expected_remote;
};

class GidPairTableTest : public testing::TestWithParam<PairCase> {};

TEST_P(GidPairTableTest, BestPairIsChosen) {
  const PairCase& row = GetParam();
  const auto pair =
      ChooseGidPair(EthernetPort(row.local), EthernetPort(row.remote), kAny, kAny, row.control);
  ASSERT_TRUE(pair) << pair.error().ToText();
  EXPECT_EQ(pair->local.index, row.expected_local);
  EXPECT_EQ(pair->remote.index, row.expected_remote);
  EXPECT_TRUE(pair->needs_grh);
  EXPECT_FALSE(pair->reason.empty());
}

// The order in which a table is read must not matter, only its indexes.
TEST_P(GidPairTableTest, OrderOfTheEntriesDoesNotMatter) {
  PairCase row = GetParam();
  std::mt19937 random(7);  // NOLINT(cert-msc51-cpp): the same shuffles in every run
  for (int round = 0; round < 20; ++round) {
    std::shuffle(row.local.begin(), row.local.end(), random);
    std::shuffle(row.remote.begin(), row.remote.end(), random);
    const auto pair =
        ChooseGidPair(EthernetPort(row.local), EthernetPort(row.remote), kAny, kAny, row.control);
    ASSERT_TRUE(pair) << pair.error().ToText();
    EXPECT_EQ(pair->local.index, row.expected_local);
    EXPECT_EQ(pair->remote.index, row.expected_remote);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, GidPairTableTest,
    testing::Values(
        PairCase{"RoutableV2GoesBeforeAllElse", UsualTable("fe80::1", "10.0.0.1"),
                 UsualTable("fe80::2", "10.0.0.2"), kNoControl, 3, 3},
        PairCase{"SameEntryAtAnotherIndex",
                 UsualTable("fe80::1", "10.0.0.1"),
                 {V2(0, "fe80::2"), V2(4, "10.0.0.2"), V1(6, "10.0.0.2")},
                 kNoControl,
                 3,
                 4},
        PairCase{"OneSideHasOnlyV1",
                 UsualTable("fe80::1", "10.0.0.1"),
                 {V1(0, "fe80::2"), V1(1, "10.0.0.2")},
                 kNoControl,
                 2,
                 1},
        PairCase{"V2LinkLocalGoesBeforeV1Routable",
                 {V2(0, "fe80::1"), V1(1, "10.0.0.1")},
                 {V2(0, "fe80::2"), V1(1, "10.0.0.2")},
                 kNoControl,
                 0,
                 0},
        PairCase{"OnlyLinkLocal", {V2(0, "fe80::1")}, {V2(2, "fe80::2")}, kNoControl, 0, 2},
        PairCase{"OnlyIpv6",
                 {V2(0, "fe80::1"), V2(1, "2001:db8::1")},
                 {V2(0, "fe80::2"), V2(5, "2001:db8::2")},
                 kNoControl,
                 1,
                 5},
        PairCase{"SubnetDecidesBetweenNetworks",
                 {V2(0, "10.0.1.1", "v1"), V2(1, "10.0.2.1", "v2")},
                 {V2(0, "10.0.2.2", "v0")},
                 kNoControl,
                 1,
                 0},
        PairCase{"SubnetGoesBeforeTheControlNetdev",
                 {V2(0, "10.0.1.1", "v1"), V2(1, "10.0.2.1", "v2")},
                 {V2(0, "10.0.2.2", "v0")},
                 {.local_address = "10.0.1.1", .remote_address = "10.0.1.2", .netdev = "v1"},
                 1,
                 0},
        PairCase{"ControlAddressesDecideBetweenEqualNetworks",
                 {V2(0, "10.0.1.1", "v1"), V2(1, "10.0.2.1", "v2")},
                 {V2(0, "10.0.1.2", "v1"), V2(1, "10.0.2.2", "v2")},
                 {.local_address = "10.0.2.1", .remote_address = "10.0.2.2", .netdev = "v2"},
                 1,
                 1},
        PairCase{"ControlNetdevDecidesWhenItsAddressHasNoGid",
                 {V2(0, "10.0.1.1", "v1"), V2(1, "10.0.2.1", "v2")},
                 {V2(0, "10.0.1.2", "v1"), V2(1, "10.0.2.2", "v2")},
                 {.local_address = "10.9.9.1", .remote_address = "10.9.9.2", .netdev = "v2"},
                 1,
                 1},
        PairCase{"ControlFamilyDecidesBetweenFamilies",
                 {V2(0, "10.0.0.1"), V2(1, "2001:db8::1")},
                 {V2(0, "10.0.0.2"), V2(1, "2001:db8::2")},
                 {.local_address = "2001:db8:7::1", .remote_address = "2001:db8:7::2"},
                 1,
                 1},
        PairCase{"MappedControlAddressIsIpv4",
                 {V2(0, "2001:db8::1"), V2(1, "10.0.0.1")},
                 {V2(0, "2001:db8::2"), V2(1, "10.0.0.2")},
                 {.local_address = "::ffff:10.0.0.1", .remote_address = "::ffff:10.0.0.2"},
                 1,
                 1},
        PairCase{
            "RoutedNetworksStillPair", {V2(3, "10.0.1.1")}, {V2(4, "10.0.2.1")}, kNoControl, 3, 4},
        PairCase{"SameHostSameTable",
                 UsualTable("fe80::1", "10.0.0.1"),
                 UsualTable("fe80::1", "10.0.0.1"),
                 {.loopback = true},
                 3,
                 3},
        PairCase{"SameHostWithTwoAddressesUsesOneEntryForBoth",
                 {V2(1, "10.0.0.1"), V2(2, "10.0.0.5")},
                 {V2(1, "10.0.0.1"), V2(2, "10.0.0.5")},
                 {.local_address = "127.0.0.1", .remote_address = "127.0.0.1", .netdev = "lo"},
                 1,
                 1}),
    [](const auto& row) { return std::string(row.param.name); });

struct RefusalCase {
  const char* name;
  GidEntry local;
  GidEntry remote;
  const char* cause;
};

class GidPairRefusalTest : public testing::TestWithParam<RefusalCase> {};

// Whether it is all there is, or forced by options: the sentence names both entries.
TEST_P(GidPairRefusalTest, HopelessPairIsRefusedNamingBothEntries) {
  const RefusalCase& row = GetParam();
  const auto pair =
      ChooseGidPair(EthernetPort({row.local}), EthernetPort({row.remote}), kAny, kAny, kNoControl);
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().error_class, ErrorClass::kSetup);
  EXPECT_THAT(pair.error().message,
              AllOf(HasSubstr(DescribeGid(row.local)), HasSubstr(DescribeGid(row.remote))));
  EXPECT_THAT(pair.error().cause, HasSubstr(row.cause));
  EXPECT_THAT(pair.error().next_step, HasSubstr("verbscope devices"));
}

TEST_P(GidPairRefusalTest, ForcedBadPairIsRefusedWithThePairThatFits) {
  const RefusalCase& row = GetParam();
  const auto pair = ChooseGidPair(EthernetPort({row.local, V2(8, "192.168.0.1")}),
                                  EthernetPort({row.remote, V2(9, "192.168.0.2")}), row.local.index,
                                  row.remote.index, kNoControl);
  ASSERT_FALSE(pair);
  EXPECT_THAT(pair.error().cause, HasSubstr(row.cause));
  EXPECT_THAT(pair.error().next_step,
              AllOf(HasSubstr("--gid-index 8"), HasSubstr("--peer gid-index=9"),
                    HasSubstr("192.168.0.1"), HasSubstr("192.168.0.2")));
}

INSTANTIATE_TEST_SUITE_P(
    All, GidPairRefusalTest,
    testing::Values(RefusalCase{"V1WithV2", V1(2, "10.0.0.1"), V2(3, "10.0.0.2"), "formats"},
                    RefusalCase{"LinkLocalWithGlobal", V2(0, "fe80::1"), V2(1, "2001:db8::2"),
                                "link-local"},
                    RefusalCase{"Ipv4LinkLocalWithRoutable", V2(0, "169.254.1.1"),
                                V2(1, "10.0.0.2"), "link-local"},
                    RefusalCase{"Ipv4WithIpv6", V2(0, "10.0.0.1"), V2(1, "2001:db8::2"), "IPv6"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(GidPairTest, ForcedIndexNarrowsOneSideAndTheOtherFollows) {
  const auto pair =
      ChooseGidPair(EthernetPort(UsualTable("fe80::1", "10.0.0.1")),
                    EthernetPort(UsualTable("fe80::2", "10.0.0.2")), kAny, 2, kNoControl);
  ASSERT_TRUE(pair) << pair.error().ToText();
  EXPECT_EQ(pair->local.index, 2);  // v1, because the peer's index 2 is v1
  EXPECT_EQ(pair->remote.index, 2);
}

TEST(GidPairTest, ForcedEmptyIndexIsRefusedWithTheEntriesThatExist) {
  const PortInfo local = EthernetPort({V2(1, "10.0.0.1")});
  const PortInfo remote = EthernetPort({V2(4, "10.0.0.2")});
  const auto here = ChooseGidPair(local, remote, 7, kAny, kNoControl);
  ASSERT_FALSE(here);
  EXPECT_EQ(here.error().message, "GID index 7 of the local port 1 is empty");
  EXPECT_THAT(here.error().cause, HasSubstr("index 1 (10.0.0.1, RoCE v2, netdev v0)"));
  EXPECT_THAT(here.error().next_step, HasSubstr("--gid-index 1"));
  const auto there = ChooseGidPair(local, remote, kAny, 0, kNoControl);
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().message, "GID index 0 of the peer's port 1 is empty");
  EXPECT_THAT(there.error().next_step, HasSubstr("--peer gid-index=4"));
}

TEST(GidPairTest, EmptyTableIsExplainedByTheNamespace) {
  const PortInfo good = EthernetPort({V2(1, "10.0.0.1")});
  const auto here = ChooseGidPair(EthernetPort({}), good, kAny, kAny, kNoControl);
  ASSERT_FALSE(here);
  EXPECT_EQ(here.error().message, "the local port 1 has no GID at all");
  EXPECT_THAT(here.error().cause, HasSubstr("namespace"));
  const auto there = ChooseGidPair(good, EthernetPort({}), kAny, 3, kNoControl);
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().message, "the peer's port 1 has no GID at all");
}

TEST(GidPairTest, ZeroEntryOfAPeerIsNotAGid) {
  const auto pair = ChooseGidPair(EthernetPort({V2(1, "2001:db8::1")}), EthernetPort({V2(0, "::")}),
                                  kAny, kAny, kNoControl);
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().message, "the peer's port 1 has no GID at all");
}

TEST(GidPairTest, ExtremeIndexesOfAPeerDoNotOverflow) {
  const auto pair = ChooseGidPair(EthernetPort({V2(2147483647, "10.0.0.1")}),
                                  EthernetPort({V2(2147483647, "10.0.0.2"), V2(-5, "10.0.0.3")}),
                                  kAny, 2147483647, kNoControl);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->remote.index, 2147483647);
}

TEST(GidPairTest, PrefixLengthOfTheControlAddressSaysWhatOneSubnetIs) {
  const PortInfo local = EthernetPort({V2(0, "172.16.0.1", "v9"), V2(1, "10.1.0.1", "v0")});
  const PortInfo remote = EthernetPort({V2(0, "10.1.7.2", "v0")});
  ControlPath path = {.local_address = "10.1.0.99", .remote_address = "10.1.7.99"};
  path.prefix_length = 24;
  EXPECT_EQ(ChooseGidPair(local, remote, kAny, kAny, path)->local.index, 0);  // only low index left
  path.prefix_length = 16;
  EXPECT_EQ(ChooseGidPair(local, remote, kAny, kAny, path)->local.index, 1);
}

struct VlanCase {
  const char* local_netdev;
  const char* remote_netdev;
  const char* remote_address;
  bool warns;
};

TEST(GidPairTest, VlanOnOneSideOfASubnetIsNoticed) {
  const VlanCase rows[] = {
      {"v0", "v0.100", "10.0.0.2", true},
      {"v0.100", "v0.200", "10.0.0.2", true},
      {"vlan100", "v0", "10.0.0.2", true},
      {"eth0.100", "ens1.100", "10.0.0.2", false},
      {"eth0", "ens1", "10.0.0.2", false},
      {"v0", "v0.100", "10.0.9.2", false},
      {"v0", "", "10.0.0.2", false},
      {"v0", "v0.backup", "10.0.0.2", false},
      {"v0", "v0.99999999999", "10.0.0.2", false},
  };
  for (const VlanCase& row : rows) {
    SCOPED_TRACE(std::string(row.local_netdev) + " " + row.remote_netdev);
    const auto pair = ChooseGidPair(EthernetPort({V2(0, "10.0.0.1", row.local_netdev)}),
                                    EthernetPort({V2(0, row.remote_address, row.remote_netdev)}),
                                    kAny, kAny, kNoControl);
    ASSERT_TRUE(pair) << pair.error().ToText();
    if (row.warns) {
      EXPECT_THAT(pair->notice, AllOf(HasSubstr(row.local_netdev), HasSubstr(row.remote_netdev)));
    } else {
      EXPECT_THAT(pair->notice, IsEmpty());
    }
  }
}

GidEntry IbGid(const std::string& address) { return Gid(0, address, "IB", ""); }

TEST(GidPairTest, LinkLayersAreNeverMixed) {
  PortInfo ethernet = EthernetPort({V2(0, "fe80::1")});
  ethernet.lid = 5;  // some RoCE ports report one: it must not matter
  const auto pair =
      ChooseGidPair(ethernet, InfiniBandPort(5, {IbGid("fe80::2")}), kAny, kAny, kNoControl);
  ASSERT_FALSE(pair);
  EXPECT_EQ(pair.error().error_class, ErrorClass::kSetup);
  EXPECT_THAT(pair.error().message, AllOf(HasSubstr("Ethernet"), HasSubstr("InfiniBand")));
}

TEST(GidPairTest, EthernetWithALidIsStillEthernet) {
  PortInfo local = EthernetPort({V2(0, "10.0.0.1")});
  local.lid = 5;
  const auto pair = ChooseGidPair(local, EthernetPort({V2(0, "10.0.0.2")}), kAny, kAny, kNoControl);
  ASSERT_TRUE(pair);
  EXPECT_TRUE(pair->needs_grh);
}

TEST(GidPairTest, UnspecifiedLinkLayersAreRefused) {
  PortInfo port = EthernetPort({V2(0, "10.0.0.1")});
  port.link_layer = LinkLayer::kUnspecified;
  const auto pair = ChooseGidPair(port, port, kAny, kAny, kNoControl);
  ASSERT_FALSE(pair);
  EXPECT_THAT(pair.error().message, HasSubstr("unspecified"));
}

TEST(GidPairTest, InfiniBandInOneSubnetIsAddressedByLid) {
  const auto pair = ChooseGidPair(InfiniBandPort(5, {IbGid("fe80::1")}),
                                  InfiniBandPort(6, {IbGid("fe80::2")}), kAny, kAny, kNoControl);
  ASSERT_TRUE(pair) << pair.error().ToText();
  EXPECT_FALSE(pair->needs_grh);
  EXPECT_EQ(pair->local.index, 0);
  EXPECT_THAT(pair->notice, IsEmpty());
}

TEST(GidPairTest, InfiniBandWithoutGidsStillHasItsLids) {
  const auto pair = ChooseGidPair(InfiniBandPort(5, {}), InfiniBandPort(6, {IbGid("fec0::2")}),
                                  kAny, kAny, kNoControl);
  ASSERT_TRUE(pair) << pair.error().ToText();
  EXPECT_FALSE(pair->needs_grh);
  // The peer confirms the pair by forcing its indexes.
  EXPECT_TRUE(ChooseGidPair(InfiniBandPort(6, {IbGid("fec0::2")}), InfiniBandPort(5, {}),
                            pair->remote.index, pair->local.index, kNoControl));
  EXPECT_FALSE(ChooseGidPair(InfiniBandPort(5, {}), InfiniBandPort(5, {}), 1, kAny, kNoControl));
}

TEST(GidPairTest, InfiniBandAcrossSubnetsNeedsARouterAndAGrh) {
  const auto pair = ChooseGidPair(InfiniBandPort(5, {IbGid("fe80::1")}),
                                  InfiniBandPort(6, {IbGid("fec0::2")}), kAny, kAny, kNoControl);
  ASSERT_TRUE(pair);
  EXPECT_TRUE(pair->needs_grh);
  EXPECT_THAT(pair->notice, HasSubstr("router"));
}

TEST(GidPairTest, InfiniBandForcedIndexMustExist) {
  const PortInfo port = InfiniBandPort(5, {IbGid("fe80::1"), Gid(1, "fec0::1", "IB", "")});
  EXPECT_EQ(ChooseGidPair(port, port, 1, 1, kNoControl)->local.index, 1);
  EXPECT_FALSE(ChooseGidPair(port, port, kAny, 3, kNoControl));
}

TEST(GidPairTest, LidZeroPointsToTheSubnetManagerOfTheRightSide) {
  const PortInfo good = InfiniBandPort(5, {IbGid("fe80::1")});
  const PortInfo bad = InfiniBandPort(0, {IbGid("fe80::2")});
  const auto here = ChooseGidPair(bad, good, kAny, kAny, kNoControl);
  ASSERT_FALSE(here);
  EXPECT_EQ(here.error().message, "the local InfiniBand port 1 has LID 0");
  EXPECT_THAT(here.error().cause, HasSubstr("subnet manager"));
  const auto there = ChooseGidPair(good, bad, kAny, kAny, kNoControl);
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().message, "the peer's InfiniBand port 1 has LID 0");
}

}  // namespace
}  // namespace verbscope
