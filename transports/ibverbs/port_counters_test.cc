#include "transports/ibverbs/port_counters.h"

#include <gtest/gtest.h>

#include "transports/common/temp_tree.h"

namespace verbscope {
namespace {

using std::chrono::milliseconds;

constexpr char kPort[] = "sys/class/infiniband/mlx5_0/ports/1/";

class PortCountersTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) { tree_.Write(path, text); }
  SystemPaths Paths() const { return {.sysfs = tree_.root() + "/sys"}; }

 private:
  TempTree tree_;
};

TEST_F(PortCountersTest, OfPortAndDevice) {
  Write(std::string(kPort) + "hw_counters/out_of_sequence", "812\n");
  Write(std::string(kPort) + "hw_counters/lifespan", "10\n");
  Write(std::string(kPort) + "counters/port_rcv_data", "18446744073709551615\n");
  Write(std::string(kPort) + "counters/broken", "N/A (no PMA)\n");
  Write("sys/class/infiniband/mlx5_0/hw_counters/out_of_sequence", "5\n");
  Write("sys/class/infiniband/mlx5_0/hw_counters/page_faults", "3\n");
  Write("sys/class/infiniband/mlx5_0/ports/2/hw_counters/out_of_sequence", "9\n");
  const std::vector<DeviceCounter> expected = {
      {"out_of_sequence", 812}, {"port_rcv_data_bytes", UINT64_MAX - 3}, {"page_faults", 3}};
  EXPECT_EQ(ReadPortCounters(Paths(), "mlx5_0", 1), expected);
  EXPECT_TRUE(ReadPortCounters(Paths(), "mlx5_1", 1).empty());
}

// Twelve words on the way over the end of 64 bits are 48 bytes.
TEST_F(PortCountersTest, WordsOfFourBytesAreBytes) {
  const auto read = [this](const std::string& words) {
    Write(std::string(kPort) + "counters/port_xmit_data", words);
    Write(std::string(kPort) + "counters/port_xmit_wait", "7");
    return ReadPortCounters(Paths(), "mlx5_0", 1);
  };
  const std::vector<DeviceCounter> before = read("18446744073709551611");
  const std::vector<DeviceCounter> after = read("7");
  ASSERT_EQ(before.size(), 2u);
  EXPECT_EQ(after[0], (DeviceCounter{"port_xmit_data_bytes", 28}));
  EXPECT_EQ(CounterChange(before[0], after[0]), 48);
  EXPECT_EQ(after[1], (DeviceCounter{"port_xmit_wait", 7})) << "ticks stay ticks";
}

TEST_F(PortCountersTest, OfTheNetdevOfThePort) {
  Write(std::string(kPort) + "gid_attrs/ndevs/0", "eth7\n");
  Write("sys/class/net/eth7/statistics/rx_dropped", "3\n");
  Write("sys/class/net/eth7/statistics/rx_packets", "900\n");
  Write("sys/class/net/eth7/carrier_changes", "2\n");
  Write("sys/class/net/eth8/statistics/rx_dropped", "9\n");
  const std::vector<DeviceCounter> expected = {{"netdev.rx_dropped", 3},
                                               {"netdev.carrier_changes", 2}};
  EXPECT_EQ(ReadPortCounters(Paths(), "mlx5_0", 1), expected);
}

TEST_F(PortCountersTest, HowLongAReadingIsOld) {
  EXPECT_EQ(CounterLifespan(Paths(), "mlx5_0", 1), milliseconds(0));
  Write(std::string(kPort) + "hw_counters/lifespan", "10\n");
  EXPECT_EQ(CounterLifespan(Paths(), "mlx5_0", 1), milliseconds(10));
  Write(std::string(kPort) + "hw_counters/lifespan", "10000\n");
  EXPECT_EQ(CounterLifespan(Paths(), "mlx5_0", 1), milliseconds(100));
  Write(std::string(kPort) + "hw_counters/lifespan", "-5\n");
  EXPECT_EQ(CounterLifespan(Paths(), "mlx5_0", 1), milliseconds(0));
}

TEST(CounterChange, OverItsWidth) {
  const auto change = [](uint64_t before, uint64_t after) {
    return CounterChange({"c", before}, {"c", after});
  };
  EXPECT_EQ(change(5, 812), 807);
  EXPECT_EQ(change(7, 7), 0);
  EXPECT_EQ(change((uint64_t{1} << 32) - 10, 5), 15) << "32 bits";
  EXPECT_EQ(change(UINT64_MAX - 9, 5), 15) << "64 bits";
  EXPECT_EQ(change(uint64_t{1} << 32, (uint64_t{1} << 32) + 3), 3);
}

}  // namespace
}  // namespace verbscope
