#include "transports/soft/options/hooks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

namespace verbscope::soft {
namespace {

TEST(ControlFaults, NothingFailsByDefault) {
  ControlFaults faults({});
  for (const std::string_view call : kControlCalls) EXPECT_EQ(faults.Next(call), std::nullopt);
}

TEST(ControlFaults, TheNthCallOfTheNameFailsOnce) {
  ControlFaults faults({{.call = "alloc_pd", .nth = 2, .errno_value = ENOMEM}});
  EXPECT_EQ(faults.Next("alloc_pd"), std::nullopt);
  EXPECT_EQ(faults.Next("reg_mr"), std::nullopt);
  EXPECT_EQ(faults.Next("alloc_pd"), ENOMEM);
  EXPECT_EQ(faults.Next("alloc_pd"), std::nullopt);
}

TEST(ControlFaults, NthZeroIsEachCall) {
  ControlFaults faults({{.call = "open_device", .nth = 0, .errno_value = EACCES}});
  EXPECT_EQ(faults.Next("open_device"), EACCES);
  EXPECT_EQ(faults.Next("open_device"), EACCES);
}

TEST(ControlFaults, AnyCountsAllCalls) {
  ControlFaults faults({{.call = "", .nth = 3, .errno_value = EIO}});
  EXPECT_EQ(faults.Next("alloc_pd"), std::nullopt);
  EXPECT_EQ(faults.Next("reg_mr"), std::nullopt);
  EXPECT_EQ(faults.Next("create_cq"), EIO);
  EXPECT_EQ(faults.Next("create_qp"), std::nullopt);
}

TEST(ControlFaults, TheFirstRuleWinsAndAllCount) {
  ControlFaults faults({{.call = "reg_mr", .nth = 1, .errno_value = ENOMEM},
                        {.call = "", .nth = 1, .errno_value = EIO},
                        {.call = "reg_mr", .nth = 2, .errno_value = EINVAL}});
  EXPECT_EQ(faults.Next("reg_mr"), ENOMEM);
  EXPECT_EQ(faults.Next("reg_mr"), EINVAL);
  EXPECT_EQ(faults.Next("reg_mr"), std::nullopt);
}

TEST(ControlFaults, ExactlyOneOfManyThreadsIsHit) {
  ControlFaults faults({{.call = "reg_mr", .nth = 500, .errno_value = ENOMEM}});
  std::atomic<int> hits = 0;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 1000; ++call) hits += faults.Next("reg_mr").has_value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hits, 1);
}

ibv_wc Success(ibv_wc_opcode opcode, unsigned flags = 0) {
  ibv_wc completion = {};
  completion.wr_id = 17;
  completion.status = IBV_WC_SUCCESS;
  completion.opcode = opcode;
  completion.byte_len = 64;
  completion.imm_data = 5;
  completion.qp_num = 9;
  completion.wc_flags = flags;
  return completion;
}

// For rules that have no kind.
constexpr CompletionKind kAny = CompletionKind::kSend;

TEST(CompletionFaults, IsInactiveByDefault) {
  EXPECT_FALSE(CompletionFaults({}).Active());
  EXPECT_TRUE(CompletionFaults(std::vector<CompletionFault>(1)).Active());
}

TEST(CompletionFaults, ChangesTheStatusOfTheNth) {
  CompletionFaults faults({{.nth = 2, .status = IBV_WC_RETRY_EXC_ERR, .vendor_err = 129}});
  ibv_wc first = Success(IBV_WC_SEND);
  faults.Apply(kAny, first);
  EXPECT_EQ(first.status, IBV_WC_SUCCESS);
  ibv_wc second = Success(IBV_WC_SEND);
  faults.Apply(kAny, second);
  EXPECT_EQ(second.status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(second.vendor_err, 129u);
  EXPECT_EQ(second.wr_id, 17u);
  EXPECT_EQ(second.qp_num, 9u);
  EXPECT_EQ(second.byte_len, 64u);  // no garbage asked for
  ibv_wc third = Success(IBV_WC_SEND);
  faults.Apply(kAny, third);
  EXPECT_EQ(third.status, IBV_WC_SUCCESS);
}

TEST(CompletionFaults, GarbageFollowsTheInjectedStatus) {
  CompletionFaults faults(
      {{.nth = 0, .garbage = true}, {.nth = 1, .status = IBV_WC_LOC_PROT_ERR, .vendor_err = 3}});
  ibv_wc completion = Success(IBV_WC_RECV, IBV_WC_WITH_IMM);
  faults.Apply(kAny, completion);
  EXPECT_EQ(completion.status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(completion.vendor_err, 3u);
  EXPECT_EQ(completion.wr_id, 17u);
  EXPECT_EQ(completion.qp_num, 9u);
  EXPECT_NE(completion.opcode, IBV_WC_RECV);
  EXPECT_NE(completion.byte_len, 64u);
  EXPECT_NE(completion.imm_data, 5u);
}

TEST(CompletionFaults, GarbageLeavesWhatASuccessDefines) {
  CompletionFaults faults({{.nth = 0, .garbage = true}});
  ibv_wc receive = Success(IBV_WC_RECV, IBV_WC_WITH_IMM);
  faults.Apply(kAny, receive);
  EXPECT_EQ(receive.status, IBV_WC_SUCCESS);
  EXPECT_EQ(receive.opcode, IBV_WC_RECV);
  EXPECT_EQ(receive.byte_len, 64u);
  EXPECT_EQ(receive.imm_data, 5u);
  EXPECT_EQ(receive.wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_NE(receive.src_qp, 0u);
  EXPECT_NE(receive.vendor_err, 0u);

  ibv_wc plain = Success(IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_WITH_IMM);
  faults.Apply(kAny, plain);
  EXPECT_EQ(plain.byte_len, 64u);

  ibv_wc read = Success(IBV_WC_RDMA_READ);
  faults.Apply(kAny, read);
  EXPECT_EQ(read.byte_len, 64u);
  EXPECT_NE(read.imm_data, 5u);

  ibv_wc send = Success(IBV_WC_SEND);
  faults.Apply(kAny, send);
  EXPECT_EQ(send.opcode, IBV_WC_SEND);
  EXPECT_NE(send.byte_len, 64u);
}

TEST(CompletionFaults, AKindCountsItsOwnAndTheOthersCountAll) {
  CompletionFaults faults(
      {{.nth = 2, .kind = CompletionKind::kReceive, .wr_id_xor = 1}, {.nth = 3, .wr_id_xor = 2}});
  const auto changes = [&faults](CompletionKind kind) {
    ibv_wc completion = Success(IBV_WC_SEND);
    EXPECT_EQ(faults.Apply(kind, completion), CompletionFate::kDeliver);
    return completion.wr_id ^ 17;
  };
  EXPECT_EQ(changes(CompletionKind::kReceive), 0u);
  EXPECT_EQ(changes(CompletionKind::kSend), 0u);
  EXPECT_EQ(changes(CompletionKind::kSend), 2u);
  EXPECT_EQ(changes(CompletionKind::kReceive), 1u);
  EXPECT_EQ(changes(CompletionKind::kReceive), 0u);
}

ibv_wc Changed(const CompletionFault& fault, ibv_wc completion) {
  CompletionFaults faults({fault});
  EXPECT_EQ(faults.Apply(CompletionKind::kReceive, completion), CompletionFate::kDeliver);
  return completion;
}

TEST(CompletionFaults, TheImmediateIsChangedWhereThereIsOne) {
  ibv_wc receive = Success(IBV_WC_RECV, IBV_WC_WITH_IMM);
  receive.imm_data = htonl(0x01020304);
  EXPECT_EQ(Changed({.imm_xor = 0x80000001}, receive).imm_data, htonl(0x81020305));
  EXPECT_EQ(Changed({.imm_swap = true}, receive).imm_data, htonl(0x04030201));
  const ibv_wc without = Changed({.drop_imm_flag = true}, receive);
  EXPECT_EQ(without.wc_flags, 0u);
  EXPECT_EQ(without.imm_data, receive.imm_data);
  const ibv_wc plain = Success(IBV_WC_RECV);
  EXPECT_EQ(Changed({.imm_xor = 1, .imm_swap = true}, plain).imm_data, plain.imm_data);
}

TEST(CompletionFaults, LengthOpcodeAndIdAreChanged) {
  const ibv_wc receive = Success(IBV_WC_RECV);
  EXPECT_EQ(Changed({.byte_len = 0}, receive).byte_len, 0u);
  EXPECT_EQ(Changed({.byte_len_add = -1}, receive).byte_len, 63u);
  EXPECT_EQ(Changed({.byte_len_add = 4}, receive).byte_len, 68u);
  EXPECT_EQ(Changed({.byte_len_add = -65}, receive).byte_len, UINT32_MAX);
  EXPECT_EQ(Changed({.opcode = IBV_WC_SEND}, receive).opcode, IBV_WC_SEND);
  EXPECT_EQ(Changed({.wr_id_xor = 16}, receive).wr_id, 1u);
}

TEST(CompletionFaults, OfTwoFatesDropWins) {
  CompletionFaults faults(
      {{.nth = 1, .hold_behind = true}, {.nth = 2, .drop = true}, {.nth = 2, .hold_behind = true}});
  ibv_wc completion = Success(IBV_WC_SEND);
  EXPECT_EQ(faults.Apply(kAny, completion), CompletionFate::kHoldBehind);
  EXPECT_EQ(faults.Apply(kAny, completion), CompletionFate::kDrop);
  EXPECT_EQ(faults.Apply(kAny, completion), CompletionFate::kDeliver);
}

TEST(DataFaults, SpoilTheMessagesThatTheyName) {
  EXPECT_FALSE(DataFaults({.max_access_bytes = 1}).Active());
  DataFaults faults({.flip_bit = 2, .skip_last = 3, .write_past = 0});
  EXPECT_TRUE(faults.Active());
  EXPECT_EQ(faults.NextMessage(), (DataVerdict{.write_past = true}));
  EXPECT_EQ(faults.NextMessage(), (DataVerdict{.flip_bit = true, .write_past = true}));
  EXPECT_EQ(faults.NextMessage(), (DataVerdict{.skip_last = true, .write_past = true}));
  EXPECT_EQ(faults.NextMessage(), (DataVerdict{.write_past = true}));
}

TEST(EventTiming, IsInactiveByDefault) {
  EXPECT_FALSE(EventTiming{}.Active());
  EXPECT_TRUE(EventTiming{.late = std::chrono::nanoseconds(1)}.Active());
  EXPECT_TRUE(EventTiming{.coalesce = true}.Active());
  EXPECT_TRUE(EventTiming{.between_poll_and_arm = true}.Active());
}

}  // namespace
}  // namespace verbscope::soft
