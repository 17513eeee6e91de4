// Every operation between the soft device and the kernel's rxe, both ways, over IPv4 and IPv6, with
// sizes around the path MTU: each byte, each immediate value and each result of an atomic is
// compared. PSNs begin just below the wrap. Runs in the lab (rxe_interop_suite.py).
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "tests/lab/interop_pair.h"

namespace verbscope::soft {
namespace {

constexpr uint32_t kLargest = 1 << 20;
constexpr uint32_t kSizes[] = {0, 1, 1023, 1024, 1025, 64 * 1024, kLargest};
constexpr size_t kRoom = kLargest + 64;  // there are bytes behind the largest message
constexpr std::byte kUntouched{0xee};
constexpr uint32_t kImmediate = 0x01020304;

class RxeMessages : public InteropTest {
 protected:
  void SetUp() override {
    InteropTest::SetUp();
    if (HasFatalFailure()) return;
    // A second: nothing is lost here, and an emulated machine has its pauses.
    ConnectEnds({.timeout = 18}, {.bytes = kRoom});
  }

  // The source and the target of one message.
  void Prepare(End& source, End& target, uint32_t bytes) {
    data_ = Pattern(bytes, ++seed_);
    if (bytes > 0) std::memcpy(source.at(0), data_.data(), bytes);
    std::memset(target.at(0), static_cast<int>(kUntouched), kRoom);
  }

  void ExpectArrived(const End& target) {
    const auto memory = target.buffer->bytes();
    EXPECT_TRUE(std::memcmp(memory.data(), data_.data(), data_.size()) == 0);
    for (size_t i = data_.size(); i < kRoom; ++i) ASSERT_EQ(memory[i], kUntouched) << "byte " << i;
  }

  void ExpectDone(SendWork work, ibv_wc_opcode opcode) {
    ASSERT_EQ(Post(from(), work), 0);
    const ibv_wc wc = Wait(from().send_cq);
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, opcode);
    EXPECT_EQ(wc.wr_id, work.wr.wr_id);
  }

  void ExpectReceived(ibv_wc_opcode opcode, uint32_t bytes, std::optional<uint32_t> immediate) {
    const ibv_wc wc = Wait(to().recv_cq);
    ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    EXPECT_EQ(wc.opcode, opcode);
    EXPECT_EQ(wc.byte_len, bytes);
    ASSERT_EQ((wc.wc_flags & IBV_WC_WITH_IMM) != 0, immediate.has_value());
    EXPECT_EQ(immediate ? wc.imm_data : 0, immediate.value_or(0));
  }

 private:
  uint32_t seed_ = 0;
  std::vector<std::byte> data_;
};

TEST_P(RxeMessages, Send) {
  for (const uint32_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    Prepare(from(), to(), bytes);
    ASSERT_EQ(PostReceive(to(), bytes, kLargest), 0);
    ExpectDone(Send(from(), bytes, bytes), IBV_WC_SEND);
    ExpectReceived(IBV_WC_RECV, bytes, std::nullopt);
    ExpectArrived(to());
  }
}

TEST_P(RxeMessages, SendWithImmediate) {
  for (const uint32_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    Prepare(from(), to(), bytes);
    ASSERT_EQ(PostReceive(to(), bytes, kLargest), 0);
    ExpectDone(SendImmediate(from(), bytes, bytes, kImmediate + bytes), IBV_WC_SEND);
    ExpectReceived(IBV_WC_RECV, bytes, kImmediate + bytes);
    ExpectArrived(to());
  }
}

TEST_P(RxeMessages, Write) {
  for (const uint32_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    Prepare(from(), to(), bytes);
    ExpectDone(Write(from(), to(), bytes, bytes), IBV_WC_RDMA_WRITE);
    ExpectArrived(to());
  }
}

TEST_P(RxeMessages, WriteWithImmediate) {
  for (const uint32_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    Prepare(from(), to(), bytes);
    ASSERT_EQ(PostReceive(to(), bytes, 0), 0);
    ExpectDone(WriteImmediate(from(), to(), bytes, bytes, kImmediate + bytes), IBV_WC_RDMA_WRITE);
    ExpectReceived(IBV_WC_RECV_RDMA_WITH_IMM, bytes, kImmediate + bytes);
    ExpectArrived(to());
  }
}

TEST_P(RxeMessages, Read) {
  for (const uint32_t bytes : kSizes) {
    SCOPED_TRACE(bytes);
    Prepare(to(), from(), bytes);
    ExpectDone(Read(from(), to(), bytes, bytes), IBV_WC_RDMA_READ);
    ExpectArrived(from());
  }
}

TEST_P(RxeMessages, FetchAndAdd) {
  uint64_t value = 0xfffffffffffffff0;
  std::memcpy(to().at(0), &value, sizeof(value));
  for (uint64_t i = 0; i < 40; ++i) {  // longer than any ring of results; the value wraps
    ExpectDone(FetchAdd(from(), to(), i, i), IBV_WC_FETCH_ADD);
    uint64_t before = 0;
    std::memcpy(&before, from().at(0), sizeof(before));
    ASSERT_EQ(before, value);
    value += i;
    ASSERT_EQ(std::memcmp(to().at(0), &value, sizeof(value)), 0);
  }
}

TEST_P(RxeMessages, CompareAndSwap) {
  uint64_t value = 5;
  std::memcpy(to().at(0), &value, sizeof(value));
  for (uint64_t i = 0; i < 40; ++i) {
    const bool equal = i % 3 != 0;
    ExpectDone(CompareSwap(from(), to(), i, equal ? value : ~value, 1000 + i), IBV_WC_COMP_SWAP);
    uint64_t before = 0;
    std::memcpy(&before, from().at(0), sizeof(before));
    ASSERT_EQ(before, value);
    if (equal) value = 1000 + i;
    ASSERT_EQ(std::memcmp(to().at(0), &value, sizeof(value)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(, RxeMessages,
                         testing::Values(InteropParam{true, false, IBV_MTU_1024},
                                         InteropParam{true, false, IBV_MTU_4096},
                                         InteropParam{true, true, IBV_MTU_1024},
                                         InteropParam{true, true, IBV_MTU_4096},
                                         InteropParam{false, false, IBV_MTU_1024},
                                         InteropParam{false, false, IBV_MTU_4096},
                                         InteropParam{false, true, IBV_MTU_1024},
                                         InteropParam{false, true, IBV_MTU_4096}),
                         InteropParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
