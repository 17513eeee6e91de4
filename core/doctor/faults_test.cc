// Every host of testdata/sysfs gives exactly the rows that are wrong with it, and names what to fix
// first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/doctor/testing.h"

namespace verbscope {
namespace {

using testing::ElementsAreArray;
using testing::HasSubstr;

struct Host {
  const char* tree;
  std::vector<std::string> wrong;  // FAIL and WARN rows
  const char* fix_first;           // part of the fix that comes first; empty: nothing to fix
};

void PrintTo(const Host& host, std::ostream* out) { *out << host.tree; }

class HostTest : public testing::TestWithParam<Host> {};

TEST_P(HostTest, HasExactlyTheseFaults) {
  const TreeHost host(GetParam().tree);
  const std::vector<PreflightRow> rows = host.Rows();
  EXPECT_THAT(WrongRows(rows), ElementsAreArray(GetParam().wrong));
  const PreflightRow* first = FirstToFix(rows);
  if (GetParam().wrong.empty()) {
    EXPECT_EQ(first, nullptr);
  } else {
    ASSERT_NE(first, nullptr);
    EXPECT_THAT(first->fix, HasSubstr(GetParam().fix_first));
  }
}

TEST_P(HostTest, EveryRowSaysWhatItIs) {
  for (const PreflightRow& row : TreeHost(GetParam().tree).Rows()) {
    EXPECT_FALSE(row.name.empty());
    EXPECT_FALSE(row.about.empty()) << row.name;
    EXPECT_FALSE(row.value.empty()) << row.name;
    EXPECT_FALSE(row.good.empty()) << row.name;
    const bool wrong = row.status == "fail" || row.status == "warn";
    EXPECT_TRUE(wrong || row.status == "ok" || row.status == "skip") << row.status;
    EXPECT_EQ(wrong, !row.symptom.empty()) << row.name;
    EXPECT_EQ(wrong, !row.fix.empty()) << row.name;
    EXPECT_EQ(row.fix.find("NAME"), std::string::npos) << row.name << ": " << row.fix;
  }
}

const Host kHealthy[] = {
    {"mlx5", {}, ""},
    {"mlx5-ib", {}, ""},
    {"bnxt", {}, ""},
    {"rxe", {}, ""},
    {"host", {"WARN devices (host): no RDMA device"}, "load the driver"},
    {"efa", {"WARN node-type (rdmap0s6): 7: unspecified"}, "switch the adapter"},
    {"irdma",
     {"WARN port-state (irdma1 port 1): 1: DOWN, 3: Disabled; another port is active",
      "WARN node-type (irdma0): 4: RNIC"},
     "ip link set ens3f1 up"},
};

const Host kFaults[] = {
    {"fault-governor",
     {"WARN governor (host): performance on 1 CPU, powersave on 1 CPU",
      "WARN energy-preference (host): balance_power"},
     "cpupower frequency-set -g performance"},
    {"fault-pcie-width", {"WARN pcie-width (mlx5_0): x8 of x16"}, "lspci -s 0000:3b:00.0"},
    {"fault-mtu",
     {"WARN netdev-mtu (mlx5_0 port 1): 1500, so RoCE packets carry 1024 bytes at most"},
     "ip link set ens1f0np0 mtu 9000"},
    {"fault-port-down",
     {"FAIL port-state (mlx5_0 port 1): 1: DOWN, 3: Disabled"},
     "ip link set ens1f0np0 up"},
    {"fault-gid-v1", {"WARN gid-type (mlx5_0 port 1): RoCE v1 only"}, "cma_roce_mode -d mlx5_0"},
    {"fault-gid-zero", {"FAIL gids (mlx5_0 port 1): all are zero"}, "network namespace"},
    {"fault-memlock", {"FAIL memlock (host): 64 KiB"}, "ulimit -l unlimited"},
    {"fault-netns", {"WARN netns-mode (host): exclusive"}, "rdma system set netns shared"},
    {"fault-container",
     {"FAIL device-file (mlx5_0): uverbs0 is not there", "WARN rdma-cm (host): not there",
      "WARN rdma-cgroup (mlx5_0): mlx5_0 hca_handle=2 hca_object=2000",
      "WARN cpu-quota (host): 50000 us of every 100000 us, throttled 17 times"},
     "modprobe ib_uverbs"},
    {"fault-slow-host",
     {"WARN pcie-speed (mlx5_0): 8.0 GT/s PCIe of 16.0 GT/s PCIe",
      "WARN numa-node (mlx5_0): node 0; this process may run on CPUs 2-3",
      "WARN iommu (mlx5_0): DMA-FQ", "WARN irq-placement (mlx5_0): 1 of 2 vectors away from node 0",
      "WARN idle-states (host): deepest enabled: C6, 133 us to leave",
      "WARN irqbalance (host): running, process 4711",
      "WARN environment (host): MLX5_SINGLE_THREADED=1, RDMAV_FORK_SAFE=1",
      "WARN numa-balancing (host): 1", "WARN transparent-hugepages (host): always",
      "WARN clocksource (host): hpet", "WARN steal-time (host): 10.0 %"},
     "reseat the card"},
    {"fault-link",
     {"WARN rate (mlx5_0 port 1): 50 Gb/sec (2X HDR); ens1f0np0 has 100 Gb/s",
      "WARN gid-netdev (mlx5_0 port 1): ens1f0np0, ens1f0np0.100",
      "WARN carrier-changes (mlx5_0 port 1): 93", "WARN link-downed (mlx5_0 port 1): 44"},
     "ethtool ens1f0np0"},
    {"fault-subnets",
     {"WARN arp-ignore (host): 0 on ens2f0np0, which shares its subnet",
      "WARN arp-announce (host): 0 on ens2f0np0, which shares its subnet",
      "WARN rp-filter (host): 1 on ens2f0np0, which shares its subnet"},
     "arp_ignore=1"},
    {"fault-ib-no-manager",
     {"FAIL port-state (mlx5_0 port 1): 2: INIT, 5: LinkUp"},
     "start a subnet manager"},
    {"fault-ib-limited",
     {"FAIL lid (mlx5_0 port 1): 0x0",
      "WARN pkeys (mlx5_0 port 1): 0 of full membership, 1 of limited",
      "WARN rate (mlx5_0 port 1): 10 Gb/sec (1X QDR)"},
     "start a subnet manager"},
    {"fault-rubbish",
     {"WARN invariant-tsc (host): without constant_tsc and nonstop_tsc"},
     "+invtsc"},
};

std::string TestName(const testing::TestParamInfo<Host>& host) {
  std::string name = host.param.tree;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Healthy, HostTest, testing::ValuesIn(kHealthy), TestName);
INSTANTIATE_TEST_SUITE_P(Faults, HostTest, testing::ValuesIn(kFaults), TestName);

}  // namespace
}  // namespace verbscope
