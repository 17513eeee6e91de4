#include "core/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/doctor/testing.h"

namespace verbscope {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const PreflightRow* Find(const std::vector<PreflightRow>& rows, const std::string& name) {
  const auto row = std::ranges::find(rows, name, &PreflightRow::name);
  return row == rows.end() ? nullptr : &*row;
}

TEST(PreflightTest, OneDeviceIsLookedAtWhenItIsNamed) {
  const TreeHost host("irdma");
  const auto rows = host.Rows({.device = "irdma1"});
  EXPECT_THAT(rows, Each(Field(&PreflightRow::about, Not(HasSubstr("irdma0")))));
  // Nothing else is up then.
  EXPECT_THAT(WrongRows(rows), Contains("FAIL port-state (irdma1 port 1): 1: DOWN, 3: Disabled"));
}

TEST(PreflightTest, ADeviceOrPortThatIsNotThereIsRefusedWithTheNames) {
  const TreeHost host("irdma");
  const auto device = Preflight(host.tree(), {.device = "mlx5_0"});
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().error_class, ErrorClass::kSetup);
  EXPECT_THAT(device.error().ToText(), HasSubstr("mlx5_0"));
  EXPECT_THAT(device.error().ToText(), HasSubstr("irdma0, irdma1"));
  const auto port = Preflight(host.tree(), {.port = 2});
  ASSERT_FALSE(port);
  EXPECT_THAT(port.error().message, HasSubstr("port 2"));
}

TEST(PreflightTest, TheSoftDeviceNeedsTheHostOnly) {
  const auto rows = TreeHost("fault-port-down").Rows({.device = "soft:drop=1%"});
  EXPECT_THAT(rows, Each(Field(&PreflightRow::about, "host")));
  EXPECT_THAT(WrongRows(rows), IsEmpty());
}

TEST(PreflightTest, WithoutADeviceNothingFails) {
  const TreeHost host("host");
  host.Write("/proc/self/limits", "Max locked memory 65536 65536 bytes\n");
  EXPECT_THAT(WrongRows(host.Rows()), Each(StartsWith("WARN")));
}

TEST(PreflightTest, AnEmptyTreeSkipsAndNeverFails) {
  const TempTree empty;
  const auto rows = Preflight(HostTree(empty.root()), {});
  ASSERT_TRUE(rows);
  EXPECT_THAT(WrongRows(*rows), testing::ElementsAre("WARN devices (host): no RDMA device"));
  EXPECT_EQ(Find(*rows, "memlock")->value, "no such file");
}

TEST(PreflightTest, ThisHostCanBeLookedAt) {
  const auto rows = Preflight(HostTree(), {});
  ASSERT_TRUE(rows);
  EXPECT_GT(rows->size(), 10u);
}

// The capability counts in the host's own user namespace only: a rootless container has it and
// gains nothing.
TEST(MemlockTest, IpcLockLiftsTheLimitOutsideUserNamespacesOnly) {
  const TreeHost host("fault-memlock");
  host.Write("/proc/self/status", "CapEff:\t0000000000004000\n");
  EXPECT_THAT(WrongRows(host.Rows()), IsEmpty());
  host.Write("/proc/self/uid_map", "0 1000 1\n");
  EXPECT_THAT(WrongRows(host.Rows()), Contains("FAIL memlock (host): 64 KiB"));
}

TEST(MemlockTest, LimitsBetweenTheDefaultAndAmpleWarn) {
  const TreeHost host("mlx5");
  const auto status = [&host](const std::string& bytes) {
    host.Write("/proc/self/limits", "Max locked memory  " + bytes + "  " + bytes + "  bytes\n");
    return Find(host.Rows(), "memlock")->status;
  };
  EXPECT_EQ(status("8388607"), "fail");
  EXPECT_EQ(status("8388608"), "warn");
  EXPECT_EQ(status("17179869183"), "warn");
  EXPECT_EQ(status("17179869184"), "ok");
  EXPECT_EQ(status("unlimited"), "ok");
}

TEST(MtuTest, RoceTakesTheLargestStandardSizeThatFits) {
  const TreeHost host("mlx5");
  const auto value = [&host](int mtu) {
    host.Write("/sys/class/net/ens1f0np0/mtu", std::to_string(mtu) + "\n");
    return Find(host.Rows(), "netdev-mtu")->value;
  };
  EXPECT_THAT(value(4191), HasSubstr("2048"));
  EXPECT_THAT(value(4192), HasSubstr("4096"));
  EXPECT_THAT(value(1500), HasSubstr("1024"));
  EXPECT_THAT(value(68), HasSubstr("carry 0"));
}

TEST(NodeTest, InterruptsAndProcessOfTheOtherNodeAreSeen) {
  const TreeHost host("mlx5-ib");  // on node 1, CPUs 2 and 3
  host.Write("/proc/interrupts", " 55: 1 2 PCI-MSI mlx5_comp0@pci:0000:a1:00.0\n");
  host.Write("/proc/irq/55/smp_affinity_list", "0-1\n");
  EXPECT_THAT(WrongRows(host.Rows()),
              Contains("WARN irq-placement (mlx5_0): 1 of 1 vectors away from node 1"));
}

TEST(SubnetsTest, TheVirtualFunctionShowsNoLink) {
  const auto rows = TreeHost("fault-subnets").Rows({.device = "mlx5_1"});
  EXPECT_THAT(Find(rows, "function")->value, HasSubstr("virtual"));
  EXPECT_EQ(Find(rows, "pcie-width")->status, "skip");
  EXPECT_EQ(Find(rows, "subnets"), nullptr);  // a device alone shares with nobody
}

TEST(VersionsTest, ADriverFromOutsideTheKernelHasAVersion) {
  const auto rows = TreeHost("efa").Rows();
  EXPECT_EQ(Find(rows, "driver")->value, "efa 2.10.0g");
  EXPECT_EQ(Find(rows, "virtual-machine")->value, "yes: p4d.24xlarge");
  EXPECT_EQ(Find(rows, "rdma-core")->value, "44.0");
}

}  // namespace
}  // namespace verbscope
