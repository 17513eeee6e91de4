// The rights and bounds of memory regions, and their keys.
#include <cerrno>
#include <set>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class MemoryRegionTest : public DeviceTest {
 protected:
  enum Op { kWrite, kRead, kAtomic, kReceive, kOps };
  // The right that the target's memory needs.
  static int RightFor(int op) {
    constexpr int kRights[kOps] = {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ,
                                   IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_LOCAL_WRITE};
    return kRights[op];
  }
  static SendWork WorkFor(int op, const End& a, const End& b) {
    if (op == kWrite) return Write(a, b, 1, 64);
    if (op == kRead) return Read(a, b, 1, 64);
    if (op == kAtomic) return FetchAdd(a, b, 1, 1);
    return Send(a, 1, 64);
  }
};

TEST_P(MemoryRegionTest, EachOperationNeedsItsRightAndNoOther) {
  for (int access = 0; access < 16; ++access) {
    const bool needs_local = (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
    if (needs_local && (access & IBV_ACCESS_LOCAL_WRITE) == 0) continue;
    for (int op = 0; op < kOps; ++op) {
      auto [a, b] = ConnectedPair({}, {.access = access});
      ASSERT_EQ(PostReceive(b, 1, 64), 0);
      ASSERT_EQ(Post(a, WorkFor(op, a, b)), 0);
      const bool allowed = (access & RightFor(op)) != 0;
      EXPECT_EQ(Wait(a.send_cq).status, allowed          ? IBV_WC_SUCCESS
                                        : op == kReceive ? IBV_WC_REM_OP_ERR
                                                         : IBV_WC_REM_ACCESS_ERR)
          << "access " << access << " operation " << op;
    }
  }
}

TEST_P(MemoryRegionTest, RightsOfTheRequestersMemory) {
  // Reading from one's own memory needs no right at all.
  for (int op = 0; op < kOps; ++op) {
    auto [a, b] = ConnectedPair({.access = 0}, {});
    ASSERT_EQ(PostReceive(b, 1, 64), 0);
    ASSERT_EQ(Post(a, WorkFor(op, a, b)), 0);
    const bool stores = op == kRead || op == kAtomic;
    EXPECT_EQ(Wait(a.send_cq).status, stores ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
  }
}

TEST_P(MemoryRegionTest, TheLastByteIsInsideAndTheNextIsNot) {
  for (const int64_t shift : {-1, 0, 1}) {
    for (const uint32_t bytes : {1U, 64U, 3000U}) {
      auto [a, b] = ConnectedPair();
      // A region in the middle of the buffer, whose neighbours are memory too.
      Mr middle = Must(b.device->RegisterMemory(b.pd.get(), {b.at(4096), bytes}, kFullAccess));
      SendWork work = Write(a, b, 1, bytes);
      work.wr.wr.rdma.rkey = middle->rkey;
      work.wr.wr.rdma.remote_addr = b.address(4096) + static_cast<uint64_t>(shift);
      ASSERT_EQ(Post(a, work), 0);
      EXPECT_EQ(Wait(a.send_cq).status, shift == 0 ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
    }
  }
}

TEST_P(MemoryRegionTest, RangesThatWrapAroundAreRefused) {
  for (const uint64_t address : {UINT64_MAX, UINT64_MAX - 62, uint64_t{0}}) {
    auto [a, b] = ConnectedPair();
    SendWork work = Read(a, b, 1, 64);
    work.wr.wr.rdma.remote_addr = address;
    ASSERT_EQ(Post(a, work), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
  }
}

TEST_P(MemoryRegionTest, RemoteRightsNeedLocalWrite) {
  End end = MakeEnd(first());
  for (const int access : {IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC}) {
    errno = 0;
    const auto refused = first().RegisterMemory(end.pd.get(), end.buffer->bytes(), access);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().errno_value, EINVAL);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_FALSE(refused.error().cause.empty());
  }
  EXPECT_FALSE(first().RegisterMemory(end.pd.get(), end.buffer->bytes(), IBV_ACCESS_MW_BIND));
}

TEST_P(MemoryRegionTest, NothingOfLengthZeroCanBeRegisteredAndUsed) {
  auto [a, b] = ConnectedPair();
  Mr empty = Must(b.device->RegisterMemory(b.pd.get(), {b.at(0), size_t{0}}, kFullAccess));
  SendWork work = Write(a, b, 1, 0);
  work.wr.wr.rdma.rkey = empty->rkey;
  ASSERT_EQ(Post(a, work), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  work = Write(a, b, 1, 1);
  work.wr.wr.rdma.rkey = empty->rkey;
  ASSERT_EQ(Post(a, work), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_P(MemoryRegionTest, MemoryThatIsNotThereIsRefused) {
  End end = MakeEnd(first());
  auto gone = Must(first().AllocateBuffer({.bytes = 65536}));
  const std::span<std::byte> range = gone->bytes();
  gone.reset();
  const auto refused = first().RegisterMemory(end.pd.get(), range, kFullAccess);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().errno_value, EFAULT);
}

TEST_P(MemoryRegionTest, KeysAreDistinctAndCannotBeGuessed) {
  End end = MakeEnd(first());
  std::set<uint32_t> keys;
  size_t close = 0;
  uint32_t last = 0;
  for (int i = 0; i < 2000; ++i) {
    const Mr mr = Must(first().RegisterMemory(end.pd.get(), end.buffer->bytes(), kFullAccess));
    keys.insert(mr->rkey);
    const uint32_t distance = mr->rkey - last;
    if (distance < 4096 || distance > UINT32_MAX - 4096) ++close;
    last = mr->rkey;
  }
  EXPECT_GE(keys.size(), 1995U);
  EXPECT_LT(close, 5U);
  EXPECT_FALSE(keys.contains(0));
}

TEST_P(MemoryRegionTest, AKeyIsGoodForNothingAfterDeregistration) {
  auto [a, b] = ConnectedPair();
  Mr mr = Must(b.device->RegisterMemory(b.pd.get(), b.buffer->bytes(), kFullAccess));
  SendWork work = Read(a, b, 1, 64);
  work.wr.wr.rdma.rkey = mr->rkey;
  ASSERT_EQ(Post(a, work), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  ASSERT_TRUE(mr.Close());
  ASSERT_EQ(Post(a, work), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_REM_ACCESS_ERR);
}

INSTANTIATE_TEST_SUITE_P(, MemoryRegionTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
