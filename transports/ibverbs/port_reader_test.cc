#include "transports/ibverbs/port_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "transports/ibverbs/fake_verbs.h"

namespace verbscope {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

SystemPaths Fixture() {
  SystemPaths paths;
  paths.sysfs = "transports/ibverbs/testdata/sysfs";
  return paths;
}

TEST(LinkRateTest, IsLanesTimesLaneRate) {
  EXPECT_DOUBLE_EQ(LinkRate(1, 1), 2.5);    // 1X SDR
  EXPECT_DOUBLE_EQ(LinkRate(2, 4), 40);     // 4X QDR
  EXPECT_DOUBLE_EQ(LinkRate(2, 16), 56);    // 4X FDR
  EXPECT_DOUBLE_EQ(LinkRate(2, 32), 100);   // 4X EDR
  EXPECT_DOUBLE_EQ(LinkRate(2, 64), 200);   // 4X HDR
  EXPECT_DOUBLE_EQ(LinkRate(16, 64), 100);  // 2X HDR
  EXPECT_DOUBLE_EQ(LinkRate(2, 128), 400);  // 4X NDR
  EXPECT_DOUBLE_EQ(LinkRate(8, 2), 60);     // 12X DDR
}

TEST(LinkRateTest, UnknownCodesGiveNoRate) {
  EXPECT_EQ(LinkRate(0, 32), 0);
  EXPECT_EQ(LinkRate(2, 0), 0);
  EXPECT_EQ(LinkRate(3, 32), 0);
}

TEST(LinkRateTest, SysfsTextIsReadWithItsUnit) {
  EXPECT_DOUBLE_EQ(LinkRateFromSysfs("800 Gb/sec (4X XDR)"), 800);
  EXPECT_DOUBLE_EQ(LinkRateFromSysfs("2.5 Gb/sec (1X SDR)"), 2.5);
  for (const char* text :
       {"", " Gb/sec", "fast", "12 Mb/sec", "x Gb/sec", "-1 Gb/sec", "nan Gb/sec"}) {
    EXPECT_EQ(LinkRateFromSysfs(text), 0) << text;
  }
}

TEST(LimitsTest, NegativeCountsAreNoneAndDepthsFitTheAttribute) {
  ibv_device_attr attributes = {};
  attributes.max_qp_wr = -1;
  attributes.max_sge = 30;
  attributes.max_qp_rd_atom = 16;
  attributes.max_qp_init_rd_atom = 1000;
  attributes.max_mr_size = uint64_t{1} << 40;
  const DeviceLimits limits = LimitsOf(attributes, 8);
  EXPECT_EQ(limits.max_qp_wr, 0u);
  EXPECT_EQ(limits.max_sge, 30u);
  EXPECT_EQ(limits.max_rd_atomic_responder, 16);
  EXPECT_EQ(limits.max_rd_atomic_initiator, 255);
  EXPECT_EQ(limits.max_mr_bytes, uint64_t{1} << 40);
  EXPECT_EQ(limits.comp_vectors, 8u);
  EXPECT_FALSE(limits.atomics);
  attributes.atomic_cap = IBV_ATOMIC_GLOB;
  EXPECT_TRUE(LimitsOf(attributes, 8).atomics);
}

TEST(ReadPortTest, TurnsAttributesIntoUnits) {
  FakeVerbs verbs;
  verbs.port_attributes.lid = 7;
  const auto port = ReadPort(verbs, nullptr, "mlx5_0", 1, 1, Fixture());
  ASSERT_TRUE(port);
  EXPECT_EQ(port->number, 1);
  EXPECT_TRUE(port->active);
  EXPECT_EQ(port->state, "ACTIVE");
  EXPECT_EQ(port->link_layer, LinkLayer::kEthernet);
  EXPECT_EQ(port->active_mtu_bytes, 1024u);
  EXPECT_EQ(port->max_mtu_bytes, 4096u);
  EXPECT_EQ(port->max_message_bytes, uint64_t{1} << 31);
  EXPECT_DOUBLE_EQ(port->gbit_per_s, 100);
  EXPECT_EQ(port->lid, 7u);
  EXPECT_THAT(port->gids, SizeIs(1));
}

TEST(ReadPortTest, ASpeedBeyondTheLibrarysFieldIsReadFromSysfs) {
  FakeVerbs verbs;
  verbs.port_attributes.active_speed = 0;
  const auto port = ReadPort(verbs, nullptr, "mlx5_0", 1, 1, Fixture());
  ASSERT_TRUE(port);
  EXPECT_DOUBLE_EQ(port->gbit_per_s, 100);
}

TEST(ReadPortTest, APortThatIsDownIsReadAsSuch) {
  FakeVerbs verbs;
  verbs.port_attributes.state = IBV_PORT_DOWN;
  const auto port = ReadPort(verbs, nullptr, "mlx5_0", 1, 1, Fixture());
  ASSERT_TRUE(port);
  EXPECT_FALSE(port->active);
  EXPECT_EQ(port->state, "DOWN");
}

TEST(ReadPortTest, APortThatDoesNotExistNamesThoseThatDo) {
  FakeVerbs verbs;
  for (const int number : {0, -1, 3}) {
    const auto port = ReadPort(verbs, nullptr, "mlx5_0", number, 2, Fixture());
    ASSERT_FALSE(port) << number;
    EXPECT_EQ(port.error().error_class, ErrorClass::kSetup);
    EXPECT_THAT(port.error().cause, HasSubstr("1 to 2"));
  }
}

TEST(ReadPortTest, AFailedQueryNamesDeviceAndPort) {
  FakeVerbs verbs;
  verbs.fail["QueryPort"] = EIO;
  const auto port = ReadPort(verbs, nullptr, "mlx5_0", 1, 1, Fixture());
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().message, HasSubstr("ibv_query_port(device=mlx5_0, port=1)"));
}

}  // namespace
}  // namespace verbscope
