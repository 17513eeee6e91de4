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
      {"out_of_sequence", 812}, {"port_rcv_data", UINT64_MAX}, {"page_faults", 3}};
  EXPECT_EQ(ReadPortCounters(Paths(), "mlx5_0", 1), expected);
  EXPECT_TRUE(ReadPortCounters(Paths(), "mlx5_1", 1).empty());
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
