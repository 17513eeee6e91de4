#include "transports/common/port_text.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

TEST(PortTextTest, StatesMtusAndLinkLayersAreNamed) {
  EXPECT_EQ(PortStateName(IBV_PORT_ACTIVE), "ACTIVE");
  EXPECT_EQ(PortStateName(IBV_PORT_INIT), "INIT");
  EXPECT_EQ(PortStateName(static_cast<ibv_port_state>(7)), "state 7");
  EXPECT_EQ(MtuBytes(IBV_MTU_256), 256u);
  EXPECT_EQ(MtuBytes(IBV_MTU_4096), 4096u);
  EXPECT_EQ(MtuBytes(static_cast<ibv_mtu>(0)), 0u);
  EXPECT_EQ(MtuBytes(static_cast<ibv_mtu>(6)), 0u);
  EXPECT_EQ(LinkLayerOf(IBV_LINK_LAYER_INFINIBAND), LinkLayer::kInfiniBand);
  EXPECT_EQ(LinkLayerOf(IBV_LINK_LAYER_ETHERNET), LinkLayer::kEthernet);
  EXPECT_EQ(LinkLayerOf(IBV_LINK_LAYER_UNSPECIFIED), LinkLayer::kUnspecified);
}

TEST(GidTextTest, FormatAndParseAreInverse) {
  const std::string text = "2001:0db8:0000:0000:0000:ffff:0a01:0207";
  const auto gid = ParseGid(text);
  ASSERT_TRUE(gid);
  EXPECT_EQ(gid->raw[0], 0x20);
  EXPECT_EQ(gid->raw[15], 0x07);
  EXPECT_EQ(FormatGid(*gid), text);
}

TEST(GidTextTest, OtherTextIsNoGid) {
  for (const char* text :
       {"", "fe80::1", "2001:0db8:0000:0000:0000:ffff:0a01:020", "not a GID",
        "2001-0db8-0000-0000-0000-ffff-0a01-0207", "2001:0db8:0000:0000:0000:ffff:0a01:020g",
        "2001:0db8:0000:0000:0000:ffff:0a01:-207"}) {
    EXPECT_FALSE(ParseGid(text)) << text;
  }
}

TEST(GidTextTest, OnlyAllZeroIsZero) {
  ibv_gid gid = {};
  EXPECT_TRUE(IsZero(gid));
  gid.raw[15] = 1;
  EXPECT_FALSE(IsZero(gid));
}

}  // namespace
}  // namespace verbscope
