#include "core/selection/address.h"

#include <gtest/gtest.h>

#include <cstring>

namespace verbscope {
namespace {

IpAddress Address(const char* text) { return ParseIpAddress(text).value(); }

TEST(AddressTest, TextRoundTripsInItsShortestForm) {
  for (const char* text : {"10.0.0.1", "255.255.255.255", "fe80::1", "2001:db8::a:b", "::1"}) {
    EXPECT_EQ(ToText(Address(text)), text);
  }
}

TEST(AddressTest, MappedAndPlainIpv4AreTheSameAddress) {
  EXPECT_EQ(Address("::ffff:10.0.0.1"), Address("10.0.0.1"));
  EXPECT_TRUE(Address("::ffff:10.0.0.1").is_ipv4());
  EXPECT_FALSE(Address("::10.0.0.1").is_ipv4());
}

TEST(AddressTest, ZoneIsIgnored) { EXPECT_EQ(Address("fe80::1%eth0"), Address("fe80::1")); }

TEST(AddressTest, AnythingElseIsNoAddress) {
  for (const char* text : {"", "host", "10.0.0", "10.0.0.256", "10.0.0.1 ", "fe80:::1", "%eth0"}) {
    EXPECT_FALSE(ParseIpAddress(text)) << text;
  }
}

TEST(AddressTest, GidBytesAreTheAddressBytes) {
  ibv_gid gid = {};
  gid.raw[10] = gid.raw[11] = 0xff;
  gid.raw[12] = 192;
  gid.raw[13] = 168;
  gid.raw[15] = 7;
  EXPECT_EQ(ToText(AddressOfGid(gid)), "192.168.0.7");
}

TEST(AddressTest, ScopesAreRecognised) {
  EXPECT_TRUE(Address("fe80::1").is_link_local());
  EXPECT_TRUE(Address("febf::1").is_link_local());
  EXPECT_FALSE(Address("fec0::1").is_link_local());
  EXPECT_TRUE(Address("169.254.3.4").is_link_local());
  EXPECT_FALSE(Address("169.253.3.4").is_link_local());
  EXPECT_TRUE(Address("127.1.2.3").is_loopback());
  EXPECT_TRUE(Address("::1").is_loopback());
  EXPECT_FALSE(Address("::2").is_loopback());
  EXPECT_FALSE(Address("2001::1").is_loopback());
  EXPECT_TRUE(Address("::").is_zero());
  EXPECT_FALSE(Address("0.0.0.0").is_zero());
}

TEST(AddressTest, SubnetComparesExactlyThePrefixBits) {
  EXPECT_TRUE(SameSubnet(Address("10.0.1.1"), Address("10.0.1.200"), 24));
  EXPECT_FALSE(SameSubnet(Address("10.0.1.1"), Address("10.0.2.1"), 24));
  EXPECT_TRUE(SameSubnet(Address("10.0.2.1"), Address("10.0.3.1"), 23));
  EXPECT_FALSE(SameSubnet(Address("10.0.1.1"), Address("10.0.2.1"), 23));
  EXPECT_TRUE(SameSubnet(Address("10.0.0.1"), Address("99.0.0.1"), 0));
  EXPECT_FALSE(SameSubnet(Address("10.0.0.1"), Address("10.0.0.2"), 99));  // clamped to 32
  EXPECT_TRUE(SameSubnet(Address("2001:db8::1"), Address("2001:db8::2"), 64));
  EXPECT_FALSE(SameSubnet(Address("2001:db8::1"), Address("2001:db8:0:1::1"), 64));
}

TEST(AddressTest, FamiliesNeverShareASubnet) {
  EXPECT_FALSE(SameSubnet(Address("10.0.0.1"), Address("::1"), 0));
}

}  // namespace
}  // namespace verbscope
