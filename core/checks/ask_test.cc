#include "core/checks/ask.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>

namespace verbscope {
namespace {

using nlohmann::json;

TEST(AskTest, EveryCallComesBackAsItWas) {
  Ask ask = {.call = Call::kPostSend,
             .end = 3,
             .send = {.wr_id = ~uint64_t{0},
                      .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
                      .flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED,
                      .pieces = {{64, 8}, {128, 0}},
                      .lkey = Key::kForeign,
                      .remote_offset = -1,
                      .rkey = Key::kWrong,
                      .imm = 0x01020304,
                      .compare_add = 7,
                      .swap = 9}};
  const Expected<Ask> back = AskFromJson(ToJson(ask));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(ToJson(*back), ToJson(ask));
  EXPECT_EQ(back->send.remote_offset, -1);
  ask = {.call = Call::kMake, .make = {.rnr_retry = 7}};
  const Expected<Ask> make = AskFromJson(ToJson(ask));
  ASSERT_TRUE(make.has_value()) << make.error().message;
  EXPECT_EQ(make->make.rnr_retry, 7u);
  EXPECT_EQ(make->make.timeout_code, std::nullopt);
}

TEST(AskTest, WhatIsNotKnownOrTooLargeIsRefusedByName) {
  struct Row {
    const char* pointer;
    json value;
    const char* named;
  };
  for (const Row& row :
       {Row{"/call", 99, "call"}, Row{"/end", 65, "end"}, Row{"/limit_ns", 16'000'000'000, "limit"},
        Row{"/make/buffer_bytes", kMaxEndBytes + 1, "buffer_bytes"},
        Row{"/make/send_depth", kMaxEndDepth + 1, "send_depth"}, Row{"/state", 99, "state"},
        Row{"/seed", 256, "seed"}, Row{"/prefix", 3, "prefix"}}) {
    json object = ToJson(Ask{.call = Call::kMake});
    object[json::json_pointer(row.pointer)] = row.value;
    const Expected<Ask> ask = AskFromJson(object);
    ASSERT_FALSE(ask.has_value()) << row.pointer;
    EXPECT_NE(ask.error().message.find(row.named), std::string::npos) << ask.error().message;
  }
}

// The memory of inline data is read where the post is made.
TEST(AskTest, NothingIsPostedInlineForAPeer) {
  json object = ToJson(Ask{.call = Call::kPostSend});
  object["send"]["flags"] = IBV_SEND_INLINE;
  EXPECT_FALSE(AskFromJson(object).has_value());
}

TEST(AskTest, ManyPiecesAndHalvesOfThemAreRefused) {
  json object = ToJson(Ask{.call = Call::kPostReceive});
  object["receive"]["pieces"] = json::array({1, 2, 3});
  EXPECT_FALSE(AskFromJson(object).has_value());
  object["receive"]["pieces"] = json(std::vector<int>(2 * kMaxPieces + 2, 1));
  EXPECT_FALSE(AskFromJson(object).has_value());
}

TEST(AnswerTest, ACompletionKeepsItsFields) {
  ibv_wc wc = {};
  wc.wr_id = ~uint64_t{0};
  wc.status = IBV_WC_REM_ACCESS_ERR;
  wc.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
  wc.byte_len = 5;
  wc.imm_data = htonl(0x01020304);
  wc.qp_num = 17;
  wc.wc_flags = IBV_WC_WITH_IMM;
  const Expected<Answer> answer = AnswerFromJson(ToJson(Answer{.completion = wc}));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  ASSERT_TRUE(answer->completion.has_value());
  EXPECT_EQ(answer->completion->wr_id, wc.wr_id);
  EXPECT_EQ(answer->completion->status, wc.status);
  EXPECT_EQ(answer->completion->opcode, wc.opcode);
  EXPECT_EQ(answer->completion->imm_data, wc.imm_data);
  EXPECT_EQ(answer->completion->wc_flags, wc.wc_flags);
}

}  // namespace
}  // namespace verbscope
