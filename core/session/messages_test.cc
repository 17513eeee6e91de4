#include "core/session/messages.h"

#include <gtest/gtest.h>

#include <string>

namespace verbscope {
namespace {

using nlohmann::json;

GidEntry SomeGid() {
  GidEntry gid;
  gid.index = 3;
  gid.value = "0000:0000:0000:0000:0000:ffff:0a09:0001";
  gid.type = "RoCE v2";
  gid.netdev = "v0";
  for (size_t i = 0; i < 16; ++i) gid.raw.raw[i] = static_cast<uint8_t>(i);
  return gid;
}

EndpointInfo SomeEndpoint() {
  EndpointInfo info;
  info.qps = {{.qpn = 0xfffffe, .psn = 0xabcdef, .blob = {std::byte{0}, std::byte{255}}},
              {.qpn = 0x11, .psn = 0, .blob = {}}};
  info.lid = 7;
  info.gid = SomeGid();
  info.mtu_bytes = 4096;
  info.rkey = 0x80000001;
  info.address = 0xffff800012345678;  // above 2^63: must survive
  info.buffer_bytes = 128;
  info.rd_atomic = 16;
  info.receives = 512;
  info.wants_solicited = true;
  return info;
}

TEST(MessagesTest, EndpointSurvivesTheWay) {
  const EndpointInfo before = SomeEndpoint();
  const Expected<EndpointInfo> after = EndpointInfoFromJson(json::parse(ToJson(before).dump()));
  ASSERT_TRUE(after);
  ASSERT_EQ(after->qps.size(), 2u);
  EXPECT_EQ(after->qps[0].qpn, before.qps[0].qpn);
  EXPECT_EQ(after->qps[0].psn, before.qps[0].psn);
  EXPECT_EQ(after->qps[0].blob, before.qps[0].blob);
  EXPECT_EQ(after->qps[1].qpn, before.qps[1].qpn);
  EXPECT_EQ(after->rkey, before.rkey);
  EXPECT_EQ(after->address, before.address);
  EXPECT_EQ(after->receives, 512u);
  EXPECT_TRUE(after->wants_solicited);
  EXPECT_EQ(after->gid.index, 3);
  EXPECT_EQ(after->gid.raw.raw[15], 15);
}

// Byte order of keys and addresses on the wire: most significant digit first.
TEST(MessagesTest, KeysAndAddressesAreHexadecimalMostSignificantFirst) {
  const json frame = ToJson(SomeEndpoint());
  EXPECT_EQ(frame["rkey"], "80000001");
  EXPECT_EQ(frame["address"], "ffff800012345678");
}

struct Bad {
  const char* member;
  json value;
};

class BadEndpointTest : public testing::TestWithParam<Bad> {};

TEST_P(BadEndpointTest, IsRefusedByNameOfTheMember) {
  json frame = ToJson(SomeEndpoint());
  frame[GetParam().member] = GetParam().value;
  const Expected<EndpointInfo> info = EndpointInfoFromJson(frame);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().error_class, ErrorClass::kRun);
  EXPECT_NE(info.error().message.find(GetParam().member), std::string::npos);
  frame.erase(GetParam().member);
  EXPECT_FALSE(EndpointInfoFromJson(frame));
}

INSTANTIATE_TEST_SUITE_P(
    Members, BadEndpointTest,
    testing::Values(Bad{"qps", 5}, Bad{"qps", json::array()},
                    Bad{"qps", json(std::vector<int>(kMaxQps + 1))}, Bad{"lid", 65536},
                    Bad{"mtu_bytes", 8192}, Bad{"mtu_bytes", 1.5}, Bad{"rkey", "xyz"},
                    Bad{"rkey", "0102030405"}, Bad{"address", "010203040506070809"},
                    Bad{"address", 17}, Bad{"gid", 5}, Bad{"rd_atomic", 256}, Bad{"receives", -1}));

class BadQpTest : public testing::TestWithParam<Bad> {};

TEST_P(BadQpTest, IsRefusedByNameOfTheMember) {
  json frame = ToJson(SomeEndpoint());
  frame["qps"][1][GetParam().member] = GetParam().value;
  const Expected<EndpointInfo> info = EndpointInfoFromJson(frame);
  ASSERT_FALSE(info);
  EXPECT_NE(info.error().message.find(GetParam().member), std::string::npos);
  frame["qps"][1].erase(GetParam().member);
  EXPECT_FALSE(EndpointInfoFromJson(frame));
}

INSTANTIATE_TEST_SUITE_P(
    Members, BadQpTest,
    testing::Values(Bad{"qpn", 0x1000000}, Bad{"qpn", -1}, Bad{"psn", 0x1000000}, Bad{"psn", "12"},
                    Bad{"blob", std::string(2 * Device::kMaxBlobBytes + 2, '0')},
                    Bad{"blob", "0"}));

TEST(MessagesTest, SetupSurvivesTheWayAndIsChecked) {
  SetupMessage setup;
  setup.port.number = 2;
  setup.port.state = "ACTIVE";
  setup.port.active = true;
  setup.port.link_layer = LinkLayer::kEthernet;
  setup.port.active_mtu_bytes = 1024;
  setup.port.gids = {SomeGid()};
  setup.gid = SomeGid();
  setup.peer_gid = SomeGid();
  setup.path_mtu_bytes = 1024;
  setup.wait = {.kind = WaitKind::kHybrid, .spin_ns = 20'000};
  setup.side.role = "requester";
  setup.side.host = "h";
  json frame = json::parse(ToJson(setup, "setup").dump());
  const Expected<SetupMessage> after = SetupMessageFromJson(frame);
  ASSERT_TRUE(after) << after.error().ToText();
  EXPECT_EQ(after->port.link_layer, LinkLayer::kEthernet);
  EXPECT_TRUE(after->port.active);
  EXPECT_EQ(after->port.gids.size(), 1u);
  EXPECT_EQ(after->wait, setup.wait);
  frame["wait"] = "sometimes";
  EXPECT_FALSE(SetupMessageFromJson(frame));
}

TEST(MessagesTest, PlanMessageNeedsAValidPlan) {
  PlanMessage message;
  json frame = json::parse(ToJson(message).dump());
  EXPECT_TRUE(PlanMessageFromJson(frame));
  frame["plan"]["timeout_code"] = 99;
  EXPECT_FALSE(PlanMessageFromJson(frame));
  frame.erase("plan");
  EXPECT_FALSE(PlanMessageFromJson(frame));
  EXPECT_FALSE(PlanMessageFromJson(json::array()));
}

}  // namespace
}  // namespace verbscope
