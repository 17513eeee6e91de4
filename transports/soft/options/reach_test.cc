#include "transports/soft/options/reach.h"

#include <gtest/gtest.h>

#include <cstring>

#include "transports/common/port_text.h"
#include "transports/soft/options/parse.h"

namespace verbscope::soft {
namespace {

SoftOptions Chosen(std::string_view device, const PeerReach& reach) {
  const Expected<SoftOptions> options = ParseDeviceString(device);
  EXPECT_TRUE(options);
  return OptionsFor(*options, reach);
}

std::string AddressOf(const SoftOptions& options) {
  return options.address ? FormatGid(*options.address) : "";
}

const PeerReach kSameHost = {.same_host = true, .local_address = "127.0.0.1"};
const PeerReach kElsewhere = {.same_host = false, .local_address = "10.0.0.7"};

TEST(Reach, OnThisHostNothingIsDecided) {
  for (const char* device : {"soft", "soft:link=memory", "soft:link=udp"}) {
    const SoftOptions options = Chosen(device, kSameHost);
    EXPECT_EQ(options.link, ParseDeviceString(device)->link);
    EXPECT_FALSE(options.address);
  }
}

TEST(Reach, ElsewhereItIsUdpAtTheAddressOfTheControlConnection) {
  for (const char* device : {"soft", "soft:link=auto", "soft:link=udp"}) {
    const SoftOptions options = Chosen(device, kElsewhere);
    EXPECT_EQ(options.link, LinkKind::kUdp);
    EXPECT_EQ(AddressOf(options), "0000:0000:0000:0000:0000:ffff:0a00:0007");
  }
}

TEST(Reach, AnAddressThatWasGivenStays) {
  const SoftOptions options = Chosen("soft:addr=10.1.0.1", kElsewhere);
  EXPECT_EQ(options.link, LinkKind::kUdp);
  EXPECT_EQ(AddressOf(options), "0000:0000:0000:0000:0000:ffff:0a01:0001");
}

TEST(Reach, TheZoneOfALinkLocalAddressIsNoPartOfIt) {
  const SoftOptions options = Chosen("soft", {.same_host = false, .local_address = "fe80::1%eth0"});
  EXPECT_EQ(AddressOf(options), "fe80:0000:0000:0000:0000:0000:0000:0001");
}

TEST(Reach, WhoAskedForMemoryGetsIt) {
  EXPECT_EQ(Chosen("soft:link=memory", kElsewhere).link, LinkKind::kMemory);
}

TEST(Reach, APortWithoutIpStaysInMemory) {
  SoftOptions infiniband;
  infiniband.port.link_layer = LinkLayer::kInfiniBand;
  EXPECT_EQ(OptionsFor(infiniband, kElsewhere).link, LinkKind::kAuto);
  SoftOptions table;
  table.port.gids.emplace();
  EXPECT_EQ(OptionsFor(table, kElsewhere).link, LinkKind::kAuto);
}

TEST(Reach, AnAddressThatIsNotKnownIsLeftToTheDevice) {
  const SoftOptions options = Chosen("soft", {.same_host = false, .local_address = ""});
  EXPECT_EQ(options.link, LinkKind::kUdp);
  EXPECT_FALSE(options.address);
}

}  // namespace
}  // namespace verbscope::soft
