// A device that leaves wrong data in memory, and one that reaches only the beginning of a region.
#include <algorithm>
#include <cstring>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kBytes = 2500;  // three packets

class DataFaultsTest : public DeviceTest {
 protected:
  void Open(const DataFault& fault) {
    SoftOptions options;
    options.hooks.data = fault;
    OpenDevices(options);
  }
  // One WRITE of a pattern; where b then differs from what it should hold.
  static std::vector<size_t> WriteOne(End& a, End& b, uint32_t seed) {
    const std::vector<std::byte> pattern = Pattern(kBytes, seed);
    std::copy(pattern.begin(), pattern.end(), a.at(0));
    std::memset(b.at(0), 0, b.buffer->bytes().size());
    EXPECT_EQ(Post(a, Write(a, b, seed, kBytes)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    std::vector<size_t> wrong;
    for (size_t i = 0; i < size_t{2} * kBytes; ++i) {
      const std::byte right = i < kBytes ? pattern[i] : std::byte{0};
      if (*b.at(i) != right) wrong.push_back(i);
    }
    return wrong;
  }
};

TEST_P(DataFaultsTest, TheMessagesThatAreNamedAreWrongAndTheOthersRight) {
  Open({.flip_bit = 2, .skip_last = 3, .write_past = 4});
  auto [a, b] = ConnectedPair();
  EXPECT_EQ(WriteOne(a, b, 1), std::vector<size_t>{});
  const size_t last = 2048;
  EXPECT_EQ(WriteOne(a, b, 2), std::vector<size_t>{last + (kBytes - last) / 2});
  const std::vector<size_t> missing = WriteOne(a, b, 3);
  ASSERT_FALSE(missing.empty());
  EXPECT_GE(missing.front(), last);
  EXPECT_LT(missing.back(), kBytes);
  EXPECT_EQ(WriteOne(a, b, 4), std::vector<size_t>{kBytes});
  EXPECT_EQ(WriteOne(a, b, 5), std::vector<size_t>{});
}

TEST_P(DataFaultsTest, APeerReachesTheBeginningOfARegionOnly) {
  Open({.max_access_bytes = 4096});
  for (const int op : {0, 1, 2}) {
    auto [a, b] = ConnectedPair({}, {}, {.psn = 1});
    const auto work = [&a = a, &b = b, op](uint32_t bytes, size_t offset) {
      return op == 0   ? Write(a, b, 1, bytes, offset)
             : op == 1 ? Read(a, b, 1, bytes, offset)
                       : FetchAdd(a, b, 1, 1);
    };
    SendWork inside = work(4096, 0);
    SendWork beyond = work(4097, 0);
    if (op == 2) {
      inside.wr.wr.atomic.remote_addr = b.address(4088);
      beyond.wr.wr.atomic.remote_addr = b.address(4096);
    }
    ASSERT_EQ(Post(a, inside), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS) << op;
    ASSERT_EQ(Post(a, beyond), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_REM_ACCESS_ERR) << op;
  }
}

TEST_P(DataFaultsTest, ItsOwnProgramReachesAllOfIt) {
  Open({.max_access_bytes = 4096});
  auto [a, b] = ConnectedPair();
  const std::vector<std::byte> pattern = Pattern(kBytes, 1);
  std::copy(pattern.begin(), pattern.end(), a.at(8192));
  ASSERT_EQ(PostReceive(b, 1, kBytes, 16384), 0);
  ASSERT_EQ(Post(a, Send(a, 2, kBytes, 8192)), 0);
  EXPECT_EQ(Wait(b.recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(std::memcmp(b.at(16384), pattern.data(), kBytes), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
}

INSTANTIATE_TEST_SUITE_P(, DataFaultsTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
