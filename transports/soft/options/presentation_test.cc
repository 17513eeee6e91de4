#include "transports/soft/options/presentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "transports/soft/options/parse.h"

namespace verbscope::soft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kLoopback4[] = "0000:0000:0000:0000:0000:ffff:7f00:0001";
constexpr char kLoopback6[] = "0000:0000:0000:0000:0000:0000:0000:0001";

ibv_gid V4(uint8_t a, uint8_t b, uint8_t c, uint8_t d) {
  return {.raw = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}};
}
ibv_gid V6(uint8_t first, uint8_t second, uint8_t last) {
  return {.raw = {first, second, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}};
}

std::vector<std::string> Rows(const PortInfo& port) {
  std::vector<std::string> rows;
  for (const GidEntry& gid : port.gids) {
    rows.push_back(std::to_string(gid.index) + " " + gid.value + " " + gid.type + " " + gid.netdev);
  }
  return rows;
}

PortInfo Port(const SoftOptions& options, const std::vector<HostAddress>& host) {
  return MakePortInfo(options, GidTable(options, host));
}

std::vector<HostAddress> Host() {
  return {{.netdev = "lo", .gid = V4(127, 0, 0, 1), .loopback = true},
          {.netdev = "eth0", .gid = V4(10, 0, 0, 1)},
          {.netdev = "eth1", .gid = V4(10, 1, 0, 1)},
          {.netdev = "lo", .gid = V6(0, 0, 1), .loopback = true},
          {.netdev = "eth0", .gid = V6(0xfd, 9, 1)},
          {.netdev = "eth0", .gid = V6(0xfe, 0x80, 1)},
          {.netdev = "eth1", .gid = V6(0xfe, 0x80, 2)}};
}

TEST(GidTable, IsTheHostsWithLoopbackLast) {
  EXPECT_THAT(Rows(Port({}, Host())),
              ElementsAre("0 fe80:0000:0000:0000:0000:0000:0000:0001 RoCE v2 eth0",
                          "1 0000:0000:0000:0000:0000:ffff:0a00:0001 RoCE v2 eth0",
                          "2 fd09:0000:0000:0000:0000:0000:0000:0001 RoCE v2 eth0",
                          "3 fe80:0000:0000:0000:0000:0000:0000:0002 RoCE v2 eth1",
                          "4 0000:0000:0000:0000:0000:ffff:0a01:0001 RoCE v2 eth1",
                          std::string("5 ") + kLoopback4 + " RoCE v2 lo",
                          std::string("6 ") + kLoopback6 + " RoCE v2 lo"));
}

TEST(GidTable, HasBothLoopbackAddressesOnAnyHost) {
  const auto both = ElementsAre(std::string("0 ") + kLoopback4 + " RoCE v2 lo",
                                std::string("1 ") + kLoopback6 + " RoCE v2 lo");
  EXPECT_THAT(Rows(Port({}, {})), both);
  EXPECT_THAT(Rows(Port({}, {{.netdev = "lo", .gid = V4(127, 0, 0, 1), .loopback = true}})), both);
}

TEST(GidTable, KeepsOtherAddressesOfTheLoopbackInterfaceLast) {
  const std::vector<HostAddress> host = {
      {.netdev = "lo0", .gid = V4(192, 0, 2, 1), .loopback = true},
      {.netdev = "eth0", .gid = V4(10, 0, 0, 1)}};
  EXPECT_THAT(Rows(Port({}, host)),
              ElementsAre("0 0000:0000:0000:0000:0000:ffff:0a00:0001 RoCE v2 eth0",
                          "1 0000:0000:0000:0000:0000:ffff:c000:0201 RoCE v2 lo0",
                          std::string("2 ") + kLoopback4 + " RoCE v2 lo0",
                          std::string("3 ") + kLoopback6 + " RoCE v2 lo0"));
}

TEST(GidTable, OfAHostWithTooManyAddressesKeepsLoopback) {
  std::vector<HostAddress> host = Host();
  for (int i = 0; i < 500; ++i) {
    host.push_back({.netdev = "pod" + std::to_string(i),
                    .gid = V4(172, 16, static_cast<uint8_t>(i >> 8), static_cast<uint8_t>(i))});
  }
  const PortInfo port = Port({}, host);
  ASSERT_THAT(port.gids, SizeIs(kGidTableEntries));
  EXPECT_EQ(port.gids[0].netdev, "eth0");
  EXPECT_EQ(port.gids.back().value, kLoopback6);
  EXPECT_EQ(port.gids.back().index, kGidTableEntries - 1);
}

TEST(GidTable, WithAddrIsThatAddressAlone) {
  SoftOptions options;
  options.address = V4(10, 1, 0, 1);
  EXPECT_THAT(Rows(Port(options, Host())),
              ElementsAre("0 0000:0000:0000:0000:0000:ffff:0a01:0001 RoCE v2 eth1"));
  options.address = V4(192, 0, 2, 9);  // not of this host
  EXPECT_THAT(Rows(Port(options, Host())),
              ElementsAre("0 0000:0000:0000:0000:0000:ffff:c000:0209 RoCE v2 "));
  options.address = V4(127, 0, 0, 5);
  EXPECT_THAT(Rows(Port(options, Host())),
              ElementsAre("0 0000:0000:0000:0000:0000:ffff:7f00:0005 RoCE v2 lo"));
}

TEST(GidTable, OfTheUdpLinkIsWhatItMayTakeUntilItHasAnAddress) {
  SoftOptions options;
  options.link = LinkKind::kUdp;
  EXPECT_EQ(Rows(Port(options, Host())), Rows(Port({}, Host())));
  options.address = V4(10, 1, 0, 1);
  EXPECT_THAT(Rows(Port(options, Host())),
              ElementsAre("0 0000:0000:0000:0000:0000:ffff:0a01:0001 RoCE v2 eth1"));
}

TEST(GidTable, OfTheOptionsKeepsIndexesAndHidesHoles) {
  SoftOptions options;
  options.port.gids = {{.index = 2, .gid = V4(10, 0, 0, 1), .type = "RoCE v1", .netdev = "a"},
                       {.index = 3, .unreadable_errno = EIO},
                       {.index = 4, .type = "RoCE v2"},
                       {.index = 9, .gid = V4(10, 0, 0, 1), .type = "RoCE v2", .netdev = "a"}};
  EXPECT_THAT(GidTable(options, Host()), SizeIs(4));
  EXPECT_THAT(Rows(Port(options, Host())),
              ElementsAre("2 0000:0000:0000:0000:0000:ffff:0a00:0001 RoCE v1 a",
                          "9 0000:0000:0000:0000:0000:ffff:0a00:0001 RoCE v2 a"));
  options.port.gids.emplace();
  EXPECT_THAT(Port(options, Host()).gids, IsEmpty());
}

TEST(GidTable, OfInfiniBandIsOneEntryOfTheLid) {
  const auto options = ParseConfig(R"({"port": {"link_layer": "InfiniBand", "lid": 258}})");
  ASSERT_TRUE(options) << options.error().ToText();
  const PortInfo port = Port(*options, Host());
  EXPECT_EQ(port.link_layer, LinkLayer::kInfiniBand);
  EXPECT_EQ(port.lid, 258u);
  EXPECT_EQ(port.sm_lid, 1u);
  EXPECT_THAT(Rows(port), ElementsAre("0 fe80:0000:0000:0000:0200:0000:0000:0102 IB "));
}

TEST(HostAddresses, AreThoseOfThisHostOnce) {
  const std::vector<HostAddress> host = ReadHostAddresses();
  for (const HostAddress& address : host) EXPECT_FALSE(address.netdev.empty());
  EXPECT_GE(Port({}, host).gids.size(), 2u);
}

TEST(DeviceInfo, ShowsASoftwareDevice) {
  SoftOptions options;
  options.port.active_mtu_bytes = 1024;
  const DeviceInfo info = MakeDeviceInfo(options, GidTable(options, {}), "1.2.3");
  EXPECT_EQ(info.name, "soft0");
  EXPECT_EQ(info.kind, DeviceKind::kSoftware);
  EXPECT_EQ(info.provider, "soft");
  EXPECT_EQ(info.firmware, "1.2.3");
  EXPECT_EQ(info.numa_node, -1);
  EXPECT_EQ(info.limits.max_qp, 1024u);
  EXPECT_EQ(info.limits.comp_vectors, 2u);
  ASSERT_THAT(info.ports, SizeIs(1));
  EXPECT_EQ(info.ports[0].number, 1);
  EXPECT_TRUE(info.ports[0].active);
  EXPECT_EQ(info.ports[0].state, "ACTIVE");
  EXPECT_EQ(info.ports[0].active_mtu_bytes, 1024u);
  EXPECT_EQ(info.ports[0].max_mtu_bytes, 4096u);
  EXPECT_EQ(info.ports[0].max_message_bytes, uint64_t{1} << 30);
  EXPECT_EQ(info.ports[0].gbit_per_s, 0);
  EXPECT_EQ(info.ports[0].lid, 0u);
}

TEST(DeviceInfo, ShowsAPortThatIsNotActive) {
  const std::pair<ibv_port_state, const char*> kStates[] = {
      {IBV_PORT_DOWN, "DOWN"}, {IBV_PORT_INIT, "INIT"}, {IBV_PORT_ARMED, "ARMED"}};
  for (const auto& [state, name] : kStates) {
    SoftOptions options;
    options.port.state = state;
    EXPECT_EQ(Port(options, {}).state, name);
    EXPECT_FALSE(Port(options, {}).active);
  }
}

}  // namespace
}  // namespace verbscope::soft
