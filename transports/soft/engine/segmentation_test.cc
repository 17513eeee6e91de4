// Messages against the path MTU, and memory that goes away under them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

class SegmentationTest : public ::testing::TestWithParam<std::tuple<ibv_mtu, ibv_wr_opcode>> {};

// Packets of the message, first to last.
std::vector<Opcode> Expected(ibv_wr_opcode opcode, size_t packets) {
  const bool read = opcode == IBV_WR_RDMA_READ;
  const bool write = opcode == IBV_WR_RDMA_WRITE;
  if (packets == 1) {
    return {read ? Opcode::kReadResponseOnly : write ? Opcode::kWriteOnly : Opcode::kSendOnly};
  }
  std::vector<Opcode> all(packets, read    ? Opcode::kReadResponseMiddle
                                   : write ? Opcode::kWriteMiddle
                                           : Opcode::kSendMiddle);
  all.front() = read    ? Opcode::kReadResponseFirst
                : write ? Opcode::kWriteFirst
                        : Opcode::kSendFirst;
  all.back() = read ? Opcode::kReadResponseLast : write ? Opcode::kWriteLast : Opcode::kSendLast;
  return all;
}

TEST_P(SegmentationTest, CutsAtTheMtu) {
  const auto [mtu_code, opcode] = GetParam();
  const size_t mtu = 128U << mtu_code;
  const bool read = opcode == IBV_WR_RDMA_READ;
  for (const size_t bytes : {size_t{0}, size_t{1}, mtu - 1, mtu, mtu + 1, 2 * mtu - 1, 2 * mtu,
                             2 * mtu + 1, 3 * mtu, 7 * mtu + 3}) {
    Connection c({.mtu = mtu_code});
    c.a.Fill(1);
    c.b.Fill(2);
    c.b.Receive(1, {c.b.Piece(0, 8 * mtu)});
    c.a.Post({.id = 1,
              .opcode = opcode,
              .local = {c.a.Piece(0, bytes)},
              .remote = c.b.Address(0),
              .rkey = c.b.key});
    c.a.Post({.id = 2, .opcode = IBV_WR_RDMA_WRITE});
    c.world.Run();
    const auto done = c.a.PollSend();
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
    EXPECT_TRUE(c.a.Same(0, c.b, 0, bytes));
    const size_t packets = std::max<size_t>(1, (bytes + mtu - 1) / mtu);
    std::vector<Opcode> opcodes;
    for (const Sent& sent : c.world.log) {
      const bool data = sent.from == (read ? 1 : 0) && sent.header.opcode != Opcode::kAck;
      if (!data || opcodes.size() == packets) continue;
      EXPECT_EQ(sent.header.psn, (0xfffff0 + opcodes.size()) & 0xffffff);
      EXPECT_EQ((sent.payload.size() + sent.header.pad) % 4, 0U);
      opcodes.push_back(sent.header.opcode);
    }
    EXPECT_EQ(opcodes, Expected(opcode, packets)) << bytes;
    // The next request follows all of them.
    const auto next =
        std::ranges::find(c.world.log.rbegin(), c.world.log.rend(), Opcode::kWriteOnly,
                          [](const Sent& sent) { return sent.header.opcode; });
    ASSERT_NE(next, c.world.log.rend());
    EXPECT_EQ(next->header.psn, (0xfffff0 + packets) & 0xffffff);
    EXPECT_EQ(c.a.side.engine.counters().completer_retry_err, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllSizes, SegmentationTest,
    ::testing::Combine(::testing::Values(IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048,
                                         IBV_MTU_4096),
                       ::testing::Values(IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ)));

TEST(SegmentationTest, PiecesAndPacketsNeedNotAgree) {
  for (const size_t piece : {1, 3, 100, 256, 300}) {
    Connection c({.mtu = IBV_MTU_256});
    c.a.Fill(1);
    std::vector<ibv_sge> from;
    std::vector<ibv_sge> to;
    for (size_t i = 0; i < 8; ++i) {
      from.push_back(c.a.Piece(i * piece, piece));
      to.push_back(c.b.Piece((8 - i) * 400, i == 7 ? 400 : piece / 2 + 1));
    }
    c.b.Receive(1, to);
    c.a.Post({.id = 1, .local = from});
    c.world.Run();
    const size_t bytes = 8 * piece;
    const auto received = c.b.PollReceive();
    const size_t room = 7 * (piece / 2 + 1) + 400;
    ASSERT_EQ(received.size(), 1U);
    if (bytes > room) {
      EXPECT_EQ(received[0].status, IBV_WC_LOC_LEN_ERR);
      continue;
    }
    EXPECT_EQ(received[0].byte_len, bytes);
    size_t at = 0;
    for (const ibv_sge& sge : to) {
      const size_t part = std::min<size_t>(sge.length, bytes - at);
      EXPECT_TRUE(c.b.Same(sge.addr - c.b.Address(0), c.a, at, part));
      at += part;
    }
  }
}

// Runs until a has sent `packets`, then takes away `key` of `side`.
void RemoveAfter(Connection& c, Endpoint& owner, int from, size_t packets) {
  c.world.lose = [&owner, from, packets, count = size_t{0}](const Sent& sent) mutable {
    if (sent.from == from && ++count == packets) owner.side.engine.memory().Remove(owner.key);
    return false;
  };
}

Work LongWrite(Connection& c) {
  return {.id = 1,
          .opcode = IBV_WR_RDMA_WRITE,
          .local = {c.a.Piece(0, 9000)},
          .remote = c.b.Address(0),
          .rkey = c.b.key};
}

TEST(RegionGoesTest, UnderAWriteAtTheTarget) {
  Connection c({.window_packets = 2});
  RemoveAfter(c, c.b, 0, 5);
  c.a.Post(LongWrite(c));
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().at(0).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(c.b.side.Count(IBV_EVENT_QP_ACCESS_ERR), 1U);
  EXPECT_EQ(c.b.state(), IBV_QPS_ERR);
}

TEST(RegionGoesTest, UnderAWriteAtTheSource) {
  Connection c({.window_packets = 2});
  RemoveAfter(c, c.a, 0, 5);
  c.a.Post(LongWrite(c));
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().at(0).status, IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(c.a.state(), IBV_QPS_ERR);
  EXPECT_EQ(c.b.state(), IBV_QPS_RTS);
}

TEST(RegionGoesTest, UnderTheAnswerOfARead) {
  Connection c({.channel = {.room = 2}, .timeout = 14});
  c.b.Fill(3);
  RemoveAfter(c, c.b, 1, 4);
  Work read = LongWrite(c);
  read.opcode = IBV_WR_RDMA_READ;
  c.a.Post({.id = 0, .opcode = IBV_WR_RDMA_WRITE});
  c.a.Post(read);
  c.a.Post({.id = 2, .opcode = IBV_WR_RDMA_WRITE});
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(done[2].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(c.b.state(), IBV_QPS_ERR);
  EXPECT_EQ(c.world.log.back().header.syndrome, kNakRemoteAccess);
}

TEST(RegionGoesTest, UnderTheDestinationOfARead) {
  Connection c({.channel = {.room = 2}, .timeout = 14});
  RemoveAfter(c, c.a, 1, 4);
  Work read = LongWrite(c);
  read.opcode = IBV_WR_RDMA_READ;
  c.a.Post(read);
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().at(0).status, IBV_WC_LOC_PROT_ERR);
}

TEST(RegionGoesTest, UnderAReceive) {
  Connection c({.window_packets = 2});
  c.b.Receive(5, {c.b.Piece(0, 9000)});
  RemoveAfter(c, c.b, 0, 5);
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 9000)}});
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().at(0).status, IBV_WC_REM_OP_ERR);
  EXPECT_EQ(c.b.PollReceive().at(0).status, IBV_WC_LOC_PROT_ERR);
}

}  // namespace
}  // namespace verbscope::soft::testing
