// What a post takes, where it stops, and how many slots are left.
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "transports/soft/engine/engine_fixture.h"

namespace verbscope::soft::testing {
namespace {

constexpr ibv_qp_cap kSmall = {.max_send_wr = 4,
                               .max_recv_wr = 3,
                               .max_send_sge = 2,
                               .max_recv_sge = 2,
                               .max_inline_data = 32};

// `count` zero-length WRITEs as one list.
std::vector<ibv_send_wr> SendList(size_t count) {
  std::vector<ibv_send_wr> list(count);
  for (size_t i = 0; i < count; ++i) {
    list[i] = {};
    list[i].wr_id = i;
    list[i].opcode = IBV_WR_RDMA_WRITE;
    list[i].send_flags = IBV_SEND_SIGNALED;
    list[i].next = i + 1 < count ? &list[i + 1] : nullptr;
  }
  return list;
}

TEST(PostingTest, ASendTooManyIsNamedAndThoseBeforeItStay) {
  Connection c({.cap = kSmall});
  auto list = SendList(6);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(c.a.qp->PostSend(list.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &list[4]);
  c.a.side.engine.Touch(*c.a.qp);
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().size(), 4U);
}

TEST(PostingTest, AWrongSendStopsTheList) {
  Connection c({.cap = kSmall});
  std::vector<ibv_sge> three(3, c.a.Piece(0, 1));
  const auto refused = [&c](auto change) {
    auto list = SendList(3);
    change(list[1]);
    ibv_send_wr* bad = nullptr;
    const int result = c.a.qp->PostSend(list.data(), &bad);
    EXPECT_EQ(bad, &list[1]);
    c.a.side.engine.Touch(*c.a.qp);
    c.world.Run();
    EXPECT_EQ(c.a.PollSend().size(), 1U);
    return result;
  };
  EXPECT_EQ(refused([](auto& wr) { wr.opcode = IBV_WR_LOCAL_INV; }), EINVAL);
  EXPECT_EQ(refused([](auto& wr) { wr.opcode = IBV_WR_BIND_MW; }), EINVAL);
  EXPECT_EQ(refused([](auto& wr) { wr.num_sge = -1; }), EINVAL);
  EXPECT_EQ(refused([&three](auto& wr) {
              wr.sg_list = three.data();
              wr.num_sge = 3;
            }),
            EINVAL);
  ibv_sge long_piece = c.a.Piece(0, 33);
  EXPECT_EQ(refused([&long_piece](auto& wr) {
              wr.sg_list = &long_piece;
              wr.num_sge = 1;
              wr.send_flags |= IBV_SEND_INLINE;
            }),
            EINVAL);
  EXPECT_EQ(refused([](auto& wr) {
              wr.opcode = IBV_WR_RDMA_READ;
              wr.send_flags |= IBV_SEND_INLINE;
            }),
            EINVAL);
  EXPECT_EQ(c.a.state(), IBV_QPS_RTS);
}

TEST(PostingTest, AListThatEndsInItselfEnds) {
  Connection c({.cap = kSmall});
  auto list = SendList(1);
  list[0].next = &list[0];
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(c.a.qp->PostSend(list.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &list[0]);
  ibv_recv_wr receive = {};
  receive.next = &receive;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(c.a.qp->PostReceive(&receive, &bad_receive), ENOMEM);
  EXPECT_EQ(bad_receive, &receive);
  c.a.Modify(IBV_QPS_ERR);
  EXPECT_EQ(c.a.qp->PostSend(list.data(), &bad), ENOMEM);
  EXPECT_EQ(c.a.qp->PostReceive(&receive, &bad_receive), ENOMEM);
}

TEST(PostingTest, ReceivesAreLimitedInNumberAndPieces) {
  Connection c({.cap = kSmall});
  EXPECT_EQ(c.b.Receive(0, {3, c.b.Piece(0, 1)}), EINVAL);
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(c.b.Receive(i, {c.b.Piece(0, 1)}), 0);
  EXPECT_EQ(c.b.Receive(3, {}), ENOMEM);
  // A slot is free when its completion was polled, not when it arrived.
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 1)}});
  c.world.Run();
  EXPECT_EQ(c.b.Receive(3, {}), ENOMEM);
  c.b.PollReceive();
  EXPECT_EQ(c.b.Receive(3, {}), 0);
}

TEST(PostingTest, AQpWithAnSrqTakesNoReceives) {
  Connection c({.use_srq = true});
  ibv_recv_wr wr = {};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(c.b.qp->PostReceive(&wr, &bad), EINVAL);
  EXPECT_EQ(bad, &wr);
}

TEST(PostingTest, UnsignalledRequestsHoldTheirSlotsUntilASignalledOneIsPolled) {
  Connection c({.cap = kSmall});
  const Work quiet = {.id = 1, .opcode = IBV_WR_RDMA_WRITE, .flags = 0};
  Work loud = quiet;
  loud.id = 2;
  loud.flags = IBV_SEND_SIGNALED;
  EXPECT_EQ(c.a.Post(quiet), 0);
  EXPECT_EQ(c.a.Post(quiet), 0);
  EXPECT_EQ(c.a.Post(loud), 0);
  EXPECT_EQ(c.a.Post(quiet), 0);
  c.world.Run();
  EXPECT_EQ(c.a.Post(quiet), ENOMEM);
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].wr_id, 2U);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(c.a.Post(quiet), 0);
  EXPECT_EQ(c.a.Post(quiet), ENOMEM);
  c.world.Run();
  EXPECT_TRUE(c.a.PollSend().empty());
  EXPECT_EQ(c.a.Post(loud), ENOMEM) << "a program that never signals fills its queue";
}

TEST(PostingTest, SignalAllSignalsAll) {
  Connection c({.signal_all = true});
  c.a.Post({.id = 1, .opcode = IBV_WR_RDMA_WRITE, .flags = 0});
  c.world.Run();
  EXPECT_EQ(c.a.PollSend().size(), 1U);
}

TEST(PostingTest, AQueueOfNoneTakesNone) {
  Connection c({.cap = {}});
  EXPECT_EQ(c.a.Post({.id = 1}), ENOMEM);
  EXPECT_EQ(c.a.Receive(1, {}), ENOMEM);
}

TEST(PostingTest, ThePiecesMayGoWhenThePostReturns) {
  Connection c;
  c.a.Fill(1);
  c.world.lose = [first = true](const Sent&) mutable { return std::exchange(first, false); };
  c.b.Receive(1, {c.b.Piece(0, 10)});  // Post and Receive copy the list they are given
  c.a.Post({.id = 1, .local = {c.a.Piece(0, 10)}});
  c.world.Run();
  EXPECT_TRUE(c.b.Same(0, c.a, 0, 10));
}

TEST(PostingTest, AMessageLongerThanTheDeviceTakesIsALengthError) {
  Connection c;
  const ibv_sge huge = {c.a.Address(0), 0x60000000, c.a.key};
  c.a.Post({.id = 1, .opcode = IBV_WR_RDMA_WRITE});
  c.a.Post({.id = 2, .local = {huge, huge, huge}});
  c.world.Run();
  const auto done = c.a.PollSend();
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(done[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(done[1].status, IBV_WC_LOC_LEN_ERR);
}

}  // namespace
}  // namespace verbscope::soft::testing
