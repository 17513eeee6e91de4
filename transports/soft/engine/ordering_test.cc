// What may overtake what, and how work ends when a QP does.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

Work ReadOf(Connection& c, uint64_t id, size_t bytes = 100) {
  return {.id = id,
          .opcode = IBV_WR_RDMA_READ,
          .local = {c.a.Piece(0, bytes)},
          .remote = c.b.Address(0),
          .rkey = c.b.key};
}

size_t OnTheWire(const World& world, Opcode opcode) {
  return static_cast<size_t>(
      std::ranges::count(world.log, opcode, [](const Sent& sent) { return sent.header.opcode; }));
}

TEST(OrderingTest, NoMoreReadsAreOpenThanAllowed) {
  for (const uint8_t limit : {uint8_t{1}, uint8_t{4}}) {
    Connection c({.rd_atomic = limit});
    for (uint64_t i = 0; i < 10; ++i) c.a.Post(ReadOf(c, i, 3000));
    EXPECT_EQ(OnTheWire(c.world, Opcode::kReadRequest), limit);
    size_t requests = 0;
    size_t ends = 0;
    c.world.lose = [&](const Sent& sent) {
      requests += sent.header.opcode == Opcode::kReadRequest ? 1 : 0;
      ends += sent.header.opcode == Opcode::kReadResponseLast ? 1 : 0;
      EXPECT_LE(requests, ends);
      return false;
    };
    c.world.Run();
    const auto done = c.a.PollSend();
    ASSERT_EQ(done.size(), 10U);
    for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(done[i].wr_id, i);
  }
}

TEST(OrderingTest, AtomicsCountAsReads) {
  Connection c({.rd_atomic = 2});
  for (uint64_t i = 0; i < 5; ++i) {
    c.a.Post({.id = i,
              .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
              .local = {c.a.Piece(8 * i, 8)},
              .remote = c.b.Address(0),
              .rkey = c.b.key,
              .swap_add = 1});
  }
  EXPECT_EQ(OnTheWire(c.world, Opcode::kFetchAdd), 2U);
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().size(), 5U);
  EXPECT_EQ(c.a.Word(32), c.a.Word(0) + 4);
}

TEST(OrderingTest, WithNoReadsAllowedAReadFailsAndWithRxeWaits) {
  Connection c({.rd_atomic = 0});
  c.a.Post(ReadOf(c, 1));
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].status, IBV_WC_LOC_QP_OP_ERR);
  Connection rxe({.profile = Profile::kRxe61, .rd_atomic = 0});
  rxe.a.Post(ReadOf(rxe, 1));
  rxe.world.Run();
  EXPECT_EQ(rxe.a.state(), IBV_QPS_RTS);
  EXPECT_TRUE(rxe.a.PollSend().empty());
}

TEST(OrderingTest, AResponderThatAllowsNoReadsRefusesThem) {
  Connection c;
  c.b.Modify(IBV_QPS_RESET);
  c.b.Connect(c.a, {.rd_atomic = 0});
  c.a.Post(ReadOf(c, 1));
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().at(0).status, IBV_WC_REM_INV_REQ_ERR);
}

TEST(OrderingTest, AFenceWaitsForEveryReadBeforeIt) {
  Connection c;
  c.b.Fill(7);
  const std::vector<std::byte> before = c.b.memory;
  c.a.Post(ReadOf(c, 1, 2000));
  c.a.Post(ReadOf(c, 2, 2000));
  Work write = {.id = 3,
                .opcode = IBV_WR_RDMA_WRITE,
                .local = {c.a.Piece(4000, 2000)},
                .remote = c.b.Address(0),
                .rkey = c.b.key,
                .flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE};
  c.a.Post(write);
  EXPECT_EQ(OnTheWire(c.world, Opcode::kWriteFirst), 0U);
  // The answer is lost and given again: without the fence it would show the WRITE.
  c.world.lose = [lost = 0](const Sent& sent) mutable { return sent.from == 1 && lost++ < 2; };
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().size(), 3U);
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + 2000, c.a.memory.begin()));
}

TEST(OrderingTest, WithoutAFenceAWriteNeedNotWait) {
  Connection c;
  c.a.Post(ReadOf(c, 1));
  c.a.Post({.id = 2, .opcode = IBV_WR_RDMA_WRITE});
  EXPECT_EQ(OnTheWire(c.world, Opcode::kWriteOnly), 1U);
}

TEST(OrderingTest, AQpThatFailsFlushesInOrder) {
  Connection c;
  c.a.Post({.id = 0, .opcode = IBV_WR_RDMA_WRITE, .flags = 0});
  c.a.Post({.id = 1, .local = {{c.a.Address(0), 8, 0x1234}}, .flags = 0});
  for (uint64_t i = 2; i < 10; ++i) c.a.Post({.id = i, .flags = 0});
  for (uint64_t i = 0; i < 5; ++i) c.a.Receive(i, {});
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 9U) << "the first succeeded and was not signalled";
  EXPECT_EQ(done[0].status, IBV_WC_LOC_PROT_ERR);
  for (size_t i = 0; i < done.size(); ++i) {
    EXPECT_EQ(done[i].wr_id, i + 1);
    if (i > 0) {
      EXPECT_EQ(done[i].status, IBV_WC_WR_FLUSH_ERR);
    }
  }
  const auto received = c.a.PollReceive();
  ASSERT_EQ(received.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(received[i].wr_id, i);
    EXPECT_EQ(received[i].status, IBV_WC_WR_FLUSH_ERR);
  }
  EXPECT_EQ(c.b.state(), IBV_QPS_RTS) << "the peer knows nothing of it";
}

TEST(OrderingTest, AnErrorOfThisSideWaitsForItsTurn) {
  Connection c({.timeout = 14});
  c.world.lose = [lost = false](const Sent&) mutable { return !std::exchange(lost, true); };
  c.a.Post({.id = 1, .opcode = IBV_WR_RDMA_WRITE});
  c.a.Post({.id = 2, .local = {{c.a.Address(0), 8, 0x1234}}});
  c.world.Run(kMillisecond);
  EXPECT_TRUE(c.a.PollSend().empty()) << "the first is not acknowledged yet";
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_LOC_PROT_ERR);
}

TEST(OrderingTest, ANakCompletesWhatIsBeforeTheBadRequest) {
  Connection c;
  for (uint64_t i = 0; i < 3; ++i) c.a.Post({.id = i, .opcode = IBV_WR_RDMA_WRITE});
  c.a.Post({.id = 3, .opcode = IBV_WR_RDMA_WRITE, .local = {c.a.Piece(0, 1)}, .rkey = 0x1234});
  c.a.Post({.id = 4, .opcode = IBV_WR_RDMA_WRITE});
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 5U);
  EXPECT_EQ(done[2].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[3].status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(done[4].status, IBV_WC_WR_FLUSH_ERR);
}

TEST(OrderingTest, SendWithInvalidateIsAcknowledgedAndFailsAtTheReceiver) {
  for (const Profile profile : {Profile::kIbta, Profile::kRxe61}) {
    Connection c({.profile = profile});
    c.a.Fill(1);
    c.b.Receive(1, {c.b.Piece(0, 100)});
    c.b.Receive(2, {c.b.Piece(0, 100)});
    c.a.Post({.id = 1,
              .opcode = IBV_WR_SEND_WITH_INV,
              .local = {c.a.Piece(0, 100)},
              .immediate = c.b.key});
    c.world.Run();
    EXPECT_EQ(c.a.PollSend().at(0).status, IBV_WC_SUCCESS);
    EXPECT_EQ(c.a.state(), IBV_QPS_RTS);
    const auto received = c.b.PollReceive();
    ASSERT_EQ(received.size(), 2U);
    EXPECT_EQ(received[0].status, IBV_WC_REM_INV_REQ_ERR);
    EXPECT_EQ(received[1].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(c.b.state(), IBV_QPS_ERR);
    EXPECT_TRUE(c.b.Same(0, c.a, 0, 100));
  }
}

TEST(OrderingTest, AMessageUnderWayEndsWithItsQp) {
  Connection c({.timeout = 14});
  c.b.Receive(1, {c.b.Piece(0, 5000)});
  c.b.Receive(2, {});
  c.world.lose = [](const Sent& sent) { return sent.header.opcode == Opcode::kSendLast; };
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 5000)}});
  c.world.Run(kMillisecond);
  c.b.Modify(IBV_QPS_ERR);
  const auto received = c.b.PollReceive();
  ASSERT_EQ(received.size(), 2U);
  EXPECT_EQ(received[0].wr_id, 1U);
  EXPECT_EQ(received[0].status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(received[1].wr_id, 2U);
}

}  // namespace
}  // namespace verbscope::soft::testing
