// Atomics.
#include <cstring>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

uint64_t WordAt(const End& end) {
  uint64_t word = 0;
  std::memcpy(&word, end.at(0), sizeof(word));
  return word;
}

void SetWord(const End& end, uint64_t word) { std::memcpy(end.at(0), &word, sizeof(word)); }

class AtomicTest : public DeviceTest {};

TEST_P(AtomicTest, FetchAddReturnsTheOldValueAndWraps) {
  auto [a, b] = ConnectedPair();
  SetWord(b, 5);
  for (const uint64_t add : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{1} << 63}) {
    const uint64_t before = WordAt(b);
    ASSERT_EQ(Post(a, FetchAdd(a, b, 1, add)), 0);
    const ibv_wc wc = Wait(a.send_cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, IBV_WC_FETCH_ADD);
    EXPECT_EQ(wc.byte_len, 8U);
    EXPECT_EQ(WordAt(a), before);
    EXPECT_EQ(WordAt(b), before + add);
  }
}

TEST_P(AtomicTest, CompareSwapSwapsWhenEqualOnly) {
  auto [a, b] = ConnectedPair();
  SetWord(b, 10);
  ASSERT_EQ(Post(a, CompareSwap(a, b, 1, 11, 99)), 0);
  EXPECT_EQ(Wait(a.send_cq).opcode, IBV_WC_COMP_SWAP);
  EXPECT_EQ(WordAt(a), 10U);
  EXPECT_EQ(WordAt(b), 10U);
  ASSERT_EQ(Post(a, CompareSwap(a, b, 1, 10, 99)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(WordAt(a), 10U);
  EXPECT_EQ(WordAt(b), 99U);
}

TEST_P(AtomicTest, ManyInARowAreEachExecutedOnce) {
  auto [a, b] = ConnectedPair({}, {}, {.rd_atomic = 4});
  SetWord(b, 0);
  for (int round = 0; round < 10; ++round) {
    for (uint64_t i = 0; i < 50; ++i) ASSERT_EQ(Post(a, FetchAdd(a, b, i, 1)), 0);
    for (const ibv_wc& wc : WaitFor(a.send_cq, 50)) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  EXPECT_EQ(WordAt(b), 500U);
}

TEST_P(AtomicTest, LostAnswersDoNotExecuteTwice) {
  SoftOptions options;
  options.fault.rules.push_back(
      {.direction = FaultDirection::kReceive, .packets = FaultClass::kAtomicAck, .hits = 5});
  OpenDevices(options);
  auto [a, b] = ConnectedPair({}, {}, {.retry_cnt = 7});
  SetWord(b, 0);
  for (uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(Post(a, FetchAdd(a, b, i, 1)), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(WordAt(a), i);
  }
  EXPECT_EQ(WordAt(b), 10U);
}

TEST_P(AtomicTest, UnsignalledOnesAreDoneBeforeTheNextSignalledOne) {
  auto [a, b] = ConnectedPair();
  SetWord(b, 0);
  SendWork quiet = FetchAdd(a, b, 1, 7);
  quiet.wr.send_flags = 0;
  ASSERT_EQ(Post(a, quiet), 0);
  ASSERT_EQ(Post(a, FetchAdd(a, b, 2, 1)), 0);
  EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
  EXPECT_EQ(WordAt(a), 7U);
  ExpectEmpty(a.send_cq);
}

TEST_P(AtomicTest, AnotherSizeThanEightIsALocalLengthError) {
  for (const uint32_t bytes : {0U, 4U, 16U}) {
    auto [a, b] = ConnectedPair();
    SetWord(b, 3);
    SendWork work = FetchAdd(a, b, 1, 1);
    work.sge.length = bytes;
    ASSERT_EQ(Post(a, work), 0);
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_LOC_LEN_ERR);
    EXPECT_EQ(WordAt(b), 3U);
  }
}

TEST_P(AtomicTest, TheRemoteAtomicRightIsEnough) {
  const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  auto [a, b] = ConnectedPair({}, {.access = access});
  ASSERT_EQ(Post(a, FetchAdd(a, b, 1, 1)), 0);
  EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(WordAt(b), 1U);
}

INSTANTIATE_TEST_SUITE_P(, AtomicTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
