// What messages do when all is well: delivery, queue slots, threads.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "transports/fake/fake_test_util.h"

namespace verbscope {
namespace {

TEST(FakeSend, DeliversBytesIntoThePostedReceive) {
  FakePair pair;
  Put(pair.a, 0, "hello");
  ASSERT_EQ(Recv(pair.b, 100, 8, /*wr_id=*/7), 0);
  ASSERT_EQ(Send(pair.a, 5, /*wr_id=*/3), 0);
  const auto sent = Drain(pair.a.send_cq);
  const auto received = Drain(pair.b.recv_cq);
  ASSERT_EQ(sent.size(), 1U);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(sent[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(sent[0].opcode, IBV_WC_SEND);
  EXPECT_EQ(sent[0].wr_id, 3U);
  EXPECT_EQ(sent[0].qp_num, pair.a.qp->qp_num);
  EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(received[0].wr_id, 7U);
  EXPECT_EQ(received[0].byte_len, 5U);
  EXPECT_EQ(received[0].qp_num, pair.b.qp->qp_num);
  EXPECT_EQ(received[0].wc_flags, 0U);
  EXPECT_EQ(Get(pair.b, 100, 5), "hello");
}

TEST(FakeSend, ImmediateArrivesUnchangedAndFlagged) {
  FakePair pair;
  ASSERT_EQ(Recv(pair.b, 0, 8), 0);
  ibv_sge sge = Sge(pair.a, 0, 1);
  ibv_send_wr wr = SendOf(&sge);
  wr.opcode = IBV_WR_SEND_WITH_IMM;
  wr.imm_data = htonl(0x12345678);
  ASSERT_EQ(Post(pair.a, wr), 0);
  const auto received = Drain(pair.b.recv_cq);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(received[0].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(ntohl(received[0].imm_data), 0x12345678U);
}

TEST(FakeSend, ZeroBytesNeedNeitherSgesNorKeys) {
  FakePair pair;
  ibv_recv_wr receive = {};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(pair.b.qp.get(), &receive, &bad), 0);
  ibv_send_wr wr = SendOf(nullptr);
  wr.num_sge = 0;
  ASSERT_EQ(Post(pair.a, wr), 0);
  EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_SUCCESS});
  const auto received = Drain(pair.b.recv_cq);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].status, IBV_WC_SUCCESS);
  EXPECT_EQ(received[0].byte_len, 0U);
}

TEST(FakeSend, SeveralSgesAreOneMessage) {
  FakePair pair;
  Put(pair.a, 0, "abcdef");
  ibv_sge into[2] = {Sge(pair.b, 0, 4), Sge(pair.b, 50, 4)};
  ibv_recv_wr receive = {.wr_id = 0, .next = nullptr, .sg_list = into, .num_sge = 2};
  ibv_recv_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_recv(pair.b.qp.get(), &receive, &bad), 0);
  ibv_sge from[2] = {Sge(pair.a, 3, 3), Sge(pair.a, 0, 3)};
  ibv_send_wr wr = SendOf(from);
  wr.num_sge = 2;
  ASSERT_EQ(Post(pair.a, wr), 0);
  EXPECT_EQ(Get(pair.b, 0, 4) + Get(pair.b, 50, 2), "defabc");
}

TEST(FakeSend, InlineTakesTheBytesAtPostingAndNeedsNoKey) {
  FakePair pair;
  Put(pair.a, 0, "first");
  ibv_sge sge = Sge(pair.a, 0, 5);
  sge.lkey = 0xBAD;
  ibv_send_wr wr = SendOf(&sge);
  wr.send_flags |= IBV_SEND_INLINE;
  ASSERT_EQ(Post(pair.a, wr), 0);  // waits: no receive yet
  Put(pair.a, 0, "later");
  ASSERT_EQ(Recv(pair.b, 0, 8), 0);
  EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_SUCCESS});
  EXPECT_EQ(Get(pair.b, 0, 5), "first");
  EXPECT_EQ(Send(pair.a, 65, 0, IBV_SEND_SIGNALED | IBV_SEND_INLINE), EINVAL);
}

TEST(FakeSend, WaitsForAReceiveInOrderAndCompletesOnlyThen) {
  FakePair pair;
  ASSERT_EQ(Send(pair.a, 1, 1), 0);
  ASSERT_EQ(Send(pair.a, 2, 2), 0);
  EXPECT_EQ(pair.fabric->Look(pair.a.qp.get()).sends_waiting, 2U);
  EXPECT_TRUE(Drain(pair.a.send_cq).empty());
  ASSERT_EQ(Recv(pair.b, 0, 8), 0);
  const auto sent = Drain(pair.a.send_cq);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].wr_id, 1U);
  EXPECT_EQ(Drain(pair.b.recv_cq).at(0).byte_len, 1U);
  EXPECT_EQ(pair.fabric->Look(pair.a.qp.get()).sends_waiting, 1U);
}

TEST(FakeWrite, LandsAtTheTargetWithoutACompletionThere) {
  FakePair pair;
  Put(pair.a, 0, "write");
  ibv_sge sge = Sge(pair.a, 0, 5);
  ASSERT_EQ(Post(pair.a, RdmaOf(IBV_WR_RDMA_WRITE, &sge, pair.b, 1000)), 0);
  EXPECT_EQ(Get(pair.b, 1000, 5), "write");
  EXPECT_EQ(Drain(pair.a.send_cq).at(0).opcode, IBV_WC_RDMA_WRITE);
  EXPECT_TRUE(Drain(pair.b.recv_cq).empty());
}

TEST(FakeWrite, WithImmediateTakesOneReceiveAndLeavesItsMemoryAlone) {
  FakePair pair;
  Put(pair.a, 0, "write");
  Put(pair.b, 0, "-----");
  ASSERT_EQ(Recv(pair.b, 0, 1), 0);  // shorter than the WRITE: its length does not matter
  ibv_sge sge = Sge(pair.a, 0, 5);
  ibv_send_wr wr = RdmaOf(IBV_WR_RDMA_WRITE_WITH_IMM, &sge, pair.b, 1000);
  wr.imm_data = htonl(9);
  ASSERT_EQ(Post(pair.a, wr), 0);
  const auto received = Drain(pair.b.recv_cq);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV_RDMA_WITH_IMM);
  EXPECT_EQ(received[0].byte_len, 5U);
  EXPECT_EQ(ntohl(received[0].imm_data), 9U);
  EXPECT_EQ(Get(pair.b, 0, 5), "-----");
  EXPECT_EQ(Get(pair.b, 1000, 5), "write");
}

TEST(FakeRead, FetchesRemoteMemory) {
  FakePair pair;
  Put(pair.b, 1000, "remote");
  ibv_sge sge = Sge(pair.a, 10, 6);
  ASSERT_EQ(Post(pair.a, RdmaOf(IBV_WR_RDMA_READ, &sge, pair.b, 1000)), 0);
  const ibv_wc wc = Drain(pair.a.send_cq).at(0);
  EXPECT_EQ(wc.opcode, IBV_WC_RDMA_READ);
  EXPECT_EQ(wc.byte_len, 6U);
  EXPECT_EQ(Get(pair.a, 10, 6), "remote");
}

TEST(FakeAtomic, AddsAndSwapsAndReturnsTheOldValue) {
  FakePair pair;
  auto* target = reinterpret_cast<uint64_t*>(pair.b.buffer->bytes().data() + 64);
  auto* result = reinterpret_cast<uint64_t*>(pair.a.buffer->bytes().data());
  *target = 40;
  ibv_sge sge = Sge(pair.a, 0, 8);
  ibv_send_wr wr = SendOf(&sge);
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  wr.wr.atomic = {
      .remote_addr = Sge(pair.b, 64, 0).addr, .compare_add = 2, .swap = 0, .rkey = pair.b.mr->rkey};
  ASSERT_EQ(Post(pair.a, wr), 0);
  EXPECT_EQ(*result, 40U);
  EXPECT_EQ(*target, 42U);
  wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  wr.wr.atomic.compare_add = 1;
  wr.wr.atomic.swap = 7;
  ASSERT_EQ(Post(pair.a, wr), 0);
  EXPECT_EQ(*result, 42U);  // not equal to 1: unchanged
  EXPECT_EQ(*target, 42U);
  wr.wr.atomic.compare_add = 42;
  ASSERT_EQ(Post(pair.a, wr), 0);
  EXPECT_EQ(*target, 7U);
  const auto done = Drain(pair.a.send_cq);
  ASSERT_EQ(done.size(), 3U);
  EXPECT_EQ(done[0].opcode, IBV_WC_FETCH_ADD);
  EXPECT_EQ(done[2].opcode, IBV_WC_COMP_SWAP);
  wr.wr.atomic.remote_addr += 4;
  ASSERT_EQ(Post(pair.a, wr), 0);
  EXPECT_EQ(DrainStatuses(pair.a.send_cq), Statuses{IBV_WC_REM_INV_REQ_ERR});
}

TEST(FakeQueues, SendSlotsAreFreedOnlyByPollingACompletionThatCoversThem) {
  FakePair pair({.max_wr = 4});
  ibv_sge sge = Sge(pair.a, 0, 1);
  ibv_send_wr wr = RdmaOf(IBV_WR_RDMA_WRITE, &sge, pair.b, 0);
  wr.send_flags = 0;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(Post(pair.a, wr), 0);
  wr.send_flags = IBV_SEND_SIGNALED;
  ASSERT_EQ(Post(pair.a, wr), 0);
  EXPECT_EQ(Post(pair.a, wr), ENOMEM);
  EXPECT_EQ(pair.fabric->Look(pair.a.qp.get()).send_slots_used, 4U);
  EXPECT_EQ(Drain(pair.a.send_cq).size(), 1U);  // one completion frees all four
  EXPECT_EQ(pair.fabric->Look(pair.a.qp.get()).send_slots_used, 0U);
  wr.send_flags = 0;
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Post(pair.a, wr), 0);
  EXPECT_TRUE(Drain(pair.a.send_cq).empty());
  EXPECT_EQ(Post(pair.a, wr), ENOMEM);  // forgot to signal: full for ever
}

TEST(FakeQueues, OverfullListStopsAtTheFirstRejectedRequest) {
  FakePair pair({.max_wr = 2});
  ibv_sge sge = Sge(pair.a, 0, 1);
  ibv_send_wr list[3] = {SendOf(&sge, 0), SendOf(&sge, 1), SendOf(&sge, 2)};
  list[0].next = &list[1];
  list[1].next = &list[2];
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(pair.a.qp.get(), list, &bad), ENOMEM);
  EXPECT_EQ(bad, &list[2]);
  EXPECT_EQ(pair.fabric->Look(pair.a.qp.get()).sends_waiting, 2U);
  ASSERT_EQ(Recv(pair.a, 0, 1), 0);
  ASSERT_EQ(Recv(pair.a, 0, 1), 0);
  EXPECT_EQ(Recv(pair.a, 0, 1), ENOMEM);
}

TEST(FakeQueues, PostingChecksStateAndSges) {
  auto fabric = std::make_shared<FakeFabric>();
  const FakeEnd end = MakeFakeEnd(fabric, 1);
  EXPECT_EQ(Recv(end, 0, 1), EINVAL);  // RESET
  EXPECT_EQ(Send(end, 1), EINVAL);
  FakePair pair;
  ibv_sge sges[3] = {Sge(pair.a, 0, 1), Sge(pair.a, 1, 1), Sge(pair.a, 2, 1)};
  ibv_send_wr wr = SendOf(sges);
  wr.num_sge = 3;
  EXPECT_EQ(Post(pair.a, wr), EINVAL);
  wr.num_sge = 1;
  wr.opcode = IBV_WR_LOCAL_INV;
  EXPECT_EQ(Post(pair.a, wr), EINVAL);
}

TEST(FakeThreads, TwoThreadsPingPongByBusyPolling) {
  constexpr int kRounds = 2000;
  FakePair pair;
  int echoed = 0;
  std::thread responder([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (Recv(pair.b, 0, 8) != 0) return;
      if (PollBusily(pair.b.recv_cq).status != IBV_WC_SUCCESS) return;
      if (Send(pair.b, 8) != 0) return;
      if (PollBusily(pair.b.send_cq).status != IBV_WC_SUCCESS) return;
      ++echoed;
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    std::memcpy(pair.a.buffer->bytes().data(), &i, sizeof(i));
    ASSERT_EQ(Recv(pair.a, 64, 8), 0);
    ASSERT_EQ(Send(pair.a, 8), 0);
    ASSERT_EQ(PollBusily(pair.a.send_cq).status, IBV_WC_SUCCESS);
    ASSERT_EQ(PollBusily(pair.a.recv_cq).status, IBV_WC_SUCCESS);
    ASSERT_EQ(std::memcmp(pair.a.buffer->bytes().data() + 64, &i, sizeof(i)), 0);
  }
  responder.join();
  EXPECT_EQ(echoed, kRounds);
}

TEST(FakeThreads, AWriteTargetMaySpinOnTheLastByte) {
  constexpr unsigned char kRounds = 200;
  FakePair pair;
  const auto await = [](const FakeEnd& end, unsigned char value) {
    auto* last = reinterpret_cast<unsigned char*>(end.buffer->bytes().data() + 15);
    while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != value) std::this_thread::yield();
  };
  const auto write = [](const FakeEnd& from, const FakeEnd& to, unsigned char value) {
    std::memset(from.buffer->bytes().data() + 64, value, 16);
    ibv_sge sge = Sge(from, 64, 16);
    const int posted = Post(from, RdmaOf(IBV_WR_RDMA_WRITE, &sge, to, 0));
    Drain(from.send_cq);
    return posted;
  };
  std::thread target([&] {
    for (unsigned char i = 1; i <= kRounds; ++i) {
      await(pair.b, i);
      if (Get(pair.b, 0, 16) == std::string(16, static_cast<char>(i))) write(pair.b, pair.a, i);
    }
  });
  for (unsigned char i = 1; i <= kRounds; ++i) {
    EXPECT_EQ(write(pair.a, pair.b, i), 0);
    await(pair.a, i);
  }
  target.join();
}

}  // namespace
}  // namespace verbscope
