#include "core/host/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <thread>

#include "core/host/affinity.h"

namespace verbscope {
namespace {

using testing::ElementsAre;

TEST(DescribeHostTest, SaysRoleHostSystemAndProcessor) {
  const SideRecord side = DescribeHost("responder");
  EXPECT_EQ(side.role, "responder");
  char name[256] = {};
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  EXPECT_EQ(side.host, name);
  EXPECT_FALSE(side.os.empty());
  utsname system = {};
  ASSERT_EQ(uname(&system), 0);
  EXPECT_EQ(side.kernel, system.release);
  EXPECT_FALSE(side.cpu.empty());
  EXPECT_FALSE(side.device);
  EXPECT_FALSE(side.clock);
}

TEST(DescribeHostTest, PinnedThreadNamesItsCpus) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "with one CPU no thread is pinned";
  const int cpu = ThreadCpus().back();
  std::thread thread([cpu] {
    ASSERT_TRUE(PinThread({cpu}));
    EXPECT_THAT(DescribeHost("local").pinned_cpus, ElementsAre(cpu));
  });
  thread.join();
}

TEST(DescribeHostTest, ThreadOnAllCpusIsNotPinned) {
  if (UsableCpuCount() != sysconf(_SC_NPROCESSORS_ONLN)) {
    GTEST_SKIP() << "this process itself may not run on all CPUs";
  }
  EXPECT_TRUE(DescribeHost("local").pinned_cpus.empty());
}

TEST(DescribeDeviceTest, TakesOverDevicePortAndGid) {
  DeviceInfo device;
  device.name = "rxe0";
  device.kind = DeviceKind::kSoftware;
  device.provider = "rxe";
  device.firmware = "1.2";
  device.numa_node = 1;
  PortInfo port;
  port.number = 2;
  port.state = "ACTIVE";
  port.link_layer = LinkLayer::kEthernet;
  port.active_mtu_bytes = 1024;
  const GidEntry gid = {.index = 3,
                        .value = "0000:0000:0000:0000:0000:ffff:0a00:0001",
                        .type = "RoCE v2",
                        .netdev = "v0"};
  const DeviceRecord record = Describe(device, port, gid);
  EXPECT_EQ(record.name, "rxe0");
  EXPECT_EQ(record.kind, "software");
  EXPECT_EQ(record.provider, "rxe");
  EXPECT_EQ(record.firmware, "1.2");
  EXPECT_EQ(record.link_layer, "Ethernet");
  EXPECT_EQ(record.port, 2);
  EXPECT_EQ(record.state, "ACTIVE");
  EXPECT_EQ(record.active_mtu_bytes, 1024u);
  EXPECT_EQ(record.numa_node, 1);
  ASSERT_TRUE(record.gid);
  EXPECT_EQ(record.gid->index, 3);
  EXPECT_EQ(record.gid->value, gid.value);
  EXPECT_EQ(record.gid->type, "RoCE v2");
  EXPECT_EQ(record.gid->netdev, "v0");
}

TEST(DescribeDeviceTest, UnknownNumaNodeAndGidAreAbsent) {
  const DeviceRecord record = Describe(DeviceInfo(), PortInfo(), std::nullopt);
  EXPECT_FALSE(record.numa_node);
  EXPECT_FALSE(record.gid);
  EXPECT_EQ(record.kind, "hardware");
}

TEST(Rfc3339Test, SecondsSinceTheEpochAreUtc) {
  EXPECT_EQ(Rfc3339Utc(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(Rfc3339Utc(951'827'696), "2000-02-29T12:34:56Z");
  EXPECT_EQ(Rfc3339Utc(4'102'444'799), "2099-12-31T23:59:59Z");
}

TEST(Rfc3339Test, NowIsBetweenTheClockReadingsAroundIt) {
  const std::string before = Rfc3339Utc(std::time(nullptr));
  const std::string now = Rfc3339UtcNow();
  const std::string after = Rfc3339Utc(std::time(nullptr));
  EXPECT_LE(before, now);  // the format sorts as time does
  EXPECT_LE(now, after);
}

}  // namespace
}  // namespace verbscope
