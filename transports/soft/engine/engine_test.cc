// One pass of every operation over a channel that loses nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

void ExpectOne(const std::vector<ibv_wc>& completions, uint64_t id, ibv_wc_opcode opcode) {
  ASSERT_EQ(completions.size(), 1U);
  EXPECT_EQ(completions[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(completions[0].wr_id, id);
  EXPECT_EQ(completions[0].opcode, opcode);
}

TEST(EngineTest, SendArrivesInThePostedReceive) {
  Connection c;
  c.a.Fill(3);
  ASSERT_EQ(c.b.Receive(7, {c.b.Piece(100, 5000)}), 0);
  ASSERT_EQ(c.a.Post({.id = 1, .local = {c.a.Piece(0, 3000)}}), 0);
  c.world.Run();
  ExpectOne(c.a.PollSend(), 1, IBV_WC_SEND);
  const auto received = c.b.PollReceive();
  ExpectOne(received, 7, IBV_WC_RECV);
  EXPECT_EQ(received[0].byte_len, 3000U);
  EXPECT_EQ(received[0].wc_flags, 0U);
  EXPECT_EQ(received[0].qp_num, c.b.qp->qpn());
  EXPECT_EQ(received[0].src_qp, c.a.qp->qpn());
  EXPECT_TRUE(c.b.Same(100, c.a, 0, 3000));
  EXPECT_EQ(c.b.memory[99], std::byte{0});
  EXPECT_EQ(c.b.memory[3100], std::byte{0});
}

TEST(EngineTest, SendWithImmediateDeliversTheValueUnchanged) {
  Connection c;
  c.b.Receive(7, {c.b.Piece(0, 64)});
  c.a.Post({.id = 1,
            .opcode = IBV_WR_SEND_WITH_IMM,
            .local = {c.a.Piece(0, 10)},
            .immediate = 0x12345678});
  c.world.Run();
  ExpectOne(c.a.PollSend(), 1, IBV_WC_SEND);
  const auto received = c.b.PollReceive();
  ExpectOne(received, 7, IBV_WC_RECV);
  EXPECT_EQ(received[0].byte_len, 10U);
  EXPECT_EQ(received[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(received[0].imm_data, 0x12345678U);
}

TEST(EngineTest, WriteLandsWithoutACompletionAtTheTarget) {
  Connection c;
  c.a.Fill(9);
  c.a.Post({.id = 2,
            .opcode = IBV_WR_RDMA_WRITE,
            .local = {c.a.Piece(10, 3000)},
            .remote = c.b.Address(1000),
            .rkey = c.b.key});
  c.world.Run();
  ExpectOne(c.a.PollSend(), 2, IBV_WC_RDMA_WRITE);
  EXPECT_TRUE(c.b.PollReceive().empty());
  EXPECT_TRUE(c.b.Same(1000, c.a, 10, 3000));
}

TEST(EngineTest, WriteWithImmediateTakesOneReceiveAndLeavesItsBufferAlone) {
  for (const size_t bytes : {0, 1, 1024, 3000}) {
    Connection c;
    c.a.Fill(9);
    c.b.Receive(7, {c.b.Piece(0, 64)});
    c.b.Receive(8, {c.b.Piece(0, 64)});
    c.a.Post({.id = 2,
              .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
              .local = {c.a.Piece(10, bytes)},
              .remote = c.b.Address(1000),
              .rkey = c.b.key,
              .immediate = 77});
    c.world.Run();
    ExpectOne(c.a.PollSend(), 2, IBV_WC_RDMA_WRITE);
    const auto received = c.b.PollReceive();
    ExpectOne(received, 7, IBV_WC_RECV_RDMA_WITH_IMM);
    EXPECT_EQ(received[0].byte_len, bytes);
    EXPECT_EQ(received[0].imm_data, 77U);
    EXPECT_TRUE(c.b.Same(1000, c.a, 10, bytes));
    EXPECT_EQ(c.b.memory[0], std::byte{0});
    EXPECT_EQ(c.b.memory[1000 + bytes], std::byte{0});
  }
}

TEST(EngineTest, ReadFetchesIntoSeveralPieces) {
  Connection c;
  c.b.Fill(5);
  c.a.Post({.id = 3,
            .opcode = IBV_WR_RDMA_READ,
            .local = {c.a.Piece(0, 1000), c.a.Piece(5000, 0), c.a.Piece(2000, 2500)},
            .remote = c.b.Address(40),
            .rkey = c.b.key});
  c.world.Run();
  const auto done = c.a.PollSend();
  ExpectOne(done, 3, IBV_WC_RDMA_READ);
  EXPECT_EQ(done[0].byte_len, 3500U);
  EXPECT_TRUE(c.a.Same(0, c.b, 40, 1000));
  EXPECT_TRUE(c.a.Same(2000, c.b, 1040, 2500));
  EXPECT_EQ(c.a.memory[1000], std::byte{0});
}

TEST(EngineTest, AtomicsReturnTheOldValue) {
  Connection c;
  c.b.Word(64) = 5;
  c.a.Post({.id = 1,
            .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
            .local = {c.a.Piece(0, 8)},
            .remote = c.b.Address(64),
            .rkey = c.b.key,
            .swap_add = 3});
  c.a.Post({.id = 2,
            .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
            .local = {c.a.Piece(8, 8)},
            .remote = c.b.Address(64),
            .rkey = c.b.key,
            .compare = 8,
            .swap_add = 100});
  c.a.Post({.id = 3,
            .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
            .local = {c.a.Piece(16, 8)},
            .remote = c.b.Address(64),
            .rkey = c.b.key,
            .compare = 8,
            .swap_add = 200});
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(done[1].opcode, IBV_WC_COMP_SWAP);
  for (const ibv_wc& wc : done) EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  EXPECT_EQ(c.a.Word(0), 5U);
  EXPECT_EQ(c.a.Word(8), 8U);
  EXPECT_EQ(c.a.Word(16), 100U);
  EXPECT_EQ(c.b.Word(64), 100U);
}

TEST(EngineTest, InlineDataMayGoWhenThePostReturns) {
  Connection c;
  std::vector<std::byte> unregistered(200, std::byte{0x77});
  c.b.Receive(1, {c.b.Piece(0, 256)});
  const ibv_sge piece = {reinterpret_cast<uintptr_t>(unregistered.data()), 200, /*lkey=*/0xbad};
  World& world = c.world;
  world.lose = [first = true](const Sent&) mutable { return std::exchange(first, false); };
  ASSERT_EQ(c.a.Post({.id = 1, .local = {piece}, .flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE}), 0);
  std::ranges::fill(unregistered, std::byte{0});
  world.Run();
  ExpectOne(c.a.PollSend(), 1, IBV_WC_SEND);
  ExpectOne(c.b.PollReceive(), 1, IBV_WC_RECV);
  EXPECT_EQ(c.b.memory[0], std::byte{0x77});
  EXPECT_EQ(c.b.memory[199], std::byte{0x77});
}

TEST(EngineTest, ZeroLengthNeedsNeitherKeyNorAddress) {
  Connection c;
  const ibv_sge nowhere = {0x10, 0, 0xbad};
  c.b.Receive(1, {});
  c.b.Receive(2, {nowhere});
  c.a.Post({.id = 1});
  c.a.Post({.id = 2, .local = {nowhere}});
  c.a.Post({.id = 3, .opcode = IBV_WR_RDMA_WRITE, .local = {nowhere}, .remote = 1, .rkey = 0xbad});
  c.a.Post({.id = 4, .opcode = IBV_WR_RDMA_READ, .local = {nowhere}, .remote = 1, .rkey = 0xbad});
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(done[i].status, IBV_WC_SUCCESS);
    EXPECT_EQ(done[i].wr_id, i + 1);
  }
  EXPECT_EQ(done[3].byte_len, 0U);
  const auto received = c.b.PollReceive();
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(received[0].byte_len, 0U);
  EXPECT_EQ(received[1].wr_id, 2U);
}

TEST(EngineTest, QpNumbersStayInTheirRangeAndComeBackLast) {
  const EngineOptions options = {.first_qpn = 0x70000, .last_qpn = 0x70000 + 2 * Engine::kMaxQps};
  World world(options, {}, 1);
  uint32_t expected = options.first_qpn;
  for (uint32_t i = 0; i < 5 * Engine::kMaxQps; ++i) {
    ASSERT_EQ(world.a.engine.FreeQpn(), expected);
    expected = expected == options.last_qpn ? options.first_qpn : expected + 1;
  }
}

}  // namespace
}  // namespace verbscope::soft::testing
