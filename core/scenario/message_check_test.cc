// Every check of a message, seen to pass and seen to fail.
#include "core/scenario/message_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbscope {
namespace {

constexpr uint64_t kSize = 100;

ExpectedReceive Expected() {
  return {.number = 5,
          .qp_num = 0x11,
          .opcode = IBV_WC_RECV_RDMA_WITH_IMM,
          .byte_len = kSize,
          .immediate = ImmediateOf(5, Direction::kRequest)};
}

ibv_wc Good() {
  ibv_wc completion = {};
  completion.wr_id = ReceiveId(5);
  completion.qp_num = 0x11;
  completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  completion.byte_len = kSize;
  completion.wc_flags = IBV_WC_WITH_IMM;
  completion.imm_data = ToWire(ImmediateOf(5, Direction::kRequest));
  return completion;
}

TEST(CheckReceiveTest, AGoodOnePasses) { EXPECT_FALSE(CheckReceive(Good(), Expected())); }

TEST(CheckReceiveTest, EveryFieldIsLookedAt) {
  const auto what = [](auto change) {
    ibv_wc completion = Good();
    change(completion);
    const auto mismatch = CheckReceive(completion, Expected());
    return mismatch ? mismatch->what : "";
  };
  EXPECT_EQ(what([](ibv_wc& wc) { wc.wr_id ^= 1; }), "wr_id");
  EXPECT_EQ(what([](ibv_wc& wc) { wc.qp_num = 0x12; }), "qp_num");
  EXPECT_EQ(what([](ibv_wc& wc) { wc.opcode = IBV_WC_RECV; }), "opcode");
  EXPECT_EQ(what([](ibv_wc& wc) { wc.wc_flags = 0; }), "flag IBV_WC_WITH_IMM");
  EXPECT_EQ(what([](ibv_wc& wc) { wc.imm_data ^= 1; }), "immediate");
  EXPECT_EQ(what([](ibv_wc& wc) { wc.byte_len += 4; }), "byte_len");
}

TEST(CheckReceiveTest, AnImmediateThatNobodySentIsSaid) {
  ExpectedReceive expected = Expected();
  expected.immediate.reset();
  const auto mismatch = CheckReceive(Good(), expected);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->expected, "not set");
  EXPECT_EQ(mismatch->got, "set");
}

TEST(CheckReceiveTest, ASwappedImmediateIsNamed) {
  ibv_wc completion = Good();
  completion.imm_data = __builtin_bswap32(completion.imm_data);
  EXPECT_EQ(CheckReceive(completion, Expected())->why, "byte order swapped");
}

TEST(CheckReceiveTest, AnotherRequestsCompletionIsOutOfOrder) {
  ibv_wc completion = Good();
  completion.wr_id = ReceiveId(6);
  EXPECT_EQ(CheckReceive(completion, Expected())->why,
            "completions out of order: that of request 6 came where 5 was due");
  completion.wr_id = SendId(5);
  EXPECT_EQ(CheckReceive(completion, Expected())->why, "it is of no request that was posted here");
}

TEST(CheckSendTest, IdentityAndOpcodeAreLookedAt) {
  ibv_wc completion = {};
  completion.wr_id = SendId(3);
  completion.qp_num = 7;
  completion.opcode = IBV_WC_RDMA_WRITE;
  const ExpectedSend expected{.number = 3, .qp_num = 7, .opcode = IBV_WC_RDMA_WRITE};
  EXPECT_FALSE(CheckSend(completion, expected));
  completion.opcode = IBV_WC_SEND;
  EXPECT_EQ(CheckSend(completion, expected)->what, "opcode");
  completion.qp_num = 8;
  EXPECT_EQ(CheckSend(completion, expected)->what, "qp_num");
  completion.wr_id = SendId(4);
  EXPECT_EQ(CheckSend(completion, expected)->what, "wr_id");
}

class SlotTest : public testing::Test {
 protected:
  SlotTest() {
    ClearSlot(slot_, kSize);
    FillData(std::span(slot_).subspan(kGuardBytes, kSize), 9, Direction::kRequest);
  }
  std::optional<Mismatch> Check() { return CheckSlot(slot_, kSize, 9, Direction::kRequest); }

  std::vector<std::byte> slot_ = std::vector<std::byte>(SlotBytes(kSize));
};

TEST_F(SlotTest, TheMessageInItsPlacePasses) { EXPECT_FALSE(Check()); }

TEST_F(SlotTest, EveryByteCounts) {
  for (size_t i = 0; i < slot_.size(); ++i) {
    slot_[i] ^= std::byte{1};
    const auto mismatch = Check();
    ASSERT_TRUE(mismatch) << i;
    const bool data = i >= kGuardBytes && i < kGuardBytes + kSize;
    EXPECT_EQ(mismatch->what, data              ? "data"
                              : i < kGuardBytes ? "memory in front of the data"
                                                : "memory behind the data");
    slot_[i] ^= std::byte{1};
  }
}

TEST_F(SlotTest, AnotherMessagesDataIsNotThisOnes) {
  EXPECT_TRUE(CheckSlot(slot_, kSize, 10, Direction::kRequest));
  EXPECT_TRUE(CheckSlot(slot_, kSize, 9, Direction::kAnswer));
  ClearSlot(slot_, kSize);
  EXPECT_EQ(Check()->why, "nothing was written there");
}

TEST_F(SlotTest, AWriteThatTouchesTheReceiveIsSeen) {
  EXPECT_EQ(CheckUntouched(slot_, kSize)->what, "receive buffer");
  ClearSlot(slot_, kSize);
  EXPECT_FALSE(CheckUntouched(slot_, kSize));
  slot_.back() = std::byte{0};
  EXPECT_EQ(CheckUntouched(slot_, kSize)->what, "memory behind the data");
}

}  // namespace
}  // namespace verbscope
