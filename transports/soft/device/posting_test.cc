// What posting takes and what it refuses: states, full queues, too many SGEs, inline data.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class PostingTest : public DeviceTest {
 protected:
  // Posts `count` sends as one list; the index of the first one refused, and the errno.
  static std::pair<int, int> PostList(End& end, size_t count, size_t too_many_sges_at = SIZE_MAX) {
    std::vector<SendWork> list;
    for (size_t i = 0; i < count; ++i) list.push_back(Send(end, i, 8));
    for (size_t i = 0; i < count; ++i) {
      list[i].wr.sg_list = &list[i].sge;
      list[i].wr.next = i + 1 < count ? &list[i + 1].wr : nullptr;
      if (i == too_many_sges_at) list[i].wr.num_sge = 5;
    }
    ibv_send_wr* bad = nullptr;
    const int result = ibv_post_send(end.qp.get(), &list[0].wr, &bad);
    for (size_t i = 0; i < count; ++i) {
      if (bad == &list[i].wr) return {static_cast<int>(i), result};
    }
    return {-1, result};
  }
};

TEST_P(PostingTest, SendsAreRefusedBeforeRts) {
  End a = MakeEnd(first());
  End b = MakeEnd(second());
  ASSERT_TRUE(ToInit(b));
  const auto expect_refused = [&a] {
    SendWork work = Send(a, 1, 8);
    work.wr.sg_list = &work.sge;
    ibv_send_wr* bad = nullptr;
    errno = 0;
    EXPECT_EQ(ibv_post_send(a.qp.get(), &work.wr, &bad), EINVAL);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_EQ(bad, &work.wr);
  };
  expect_refused();
  ASSERT_TRUE(ToInit(a));
  expect_refused();
  ASSERT_TRUE(ToRtr(a, b));
  expect_refused();
  ASSERT_TRUE(ToRts(a));
  ExpectEmpty(a.send_cq);
}

TEST_P(PostingTest, ReceivesAreRefusedInResetOnly) {
  End a = MakeEnd(first());
  errno = 0;
  EXPECT_EQ(PostReceive(a, 1, 8), EINVAL);
  EXPECT_EQ(errno, EINVAL);
  ASSERT_TRUE(ToInit(a));
  EXPECT_EQ(PostReceive(a, 1, 8), 0);
}

TEST_P(PostingTest, AFullSendQueueRefusesTheRestOfAList) {
  auto [a, b] = ConnectedPair({.max_send_wr = 8}, {}, {.rnr_retry = 7, .min_rnr_timer = 31});
  EXPECT_EQ(PostList(a, 11), std::pair(8, ENOMEM));
  EXPECT_EQ(PostList(a, 1), std::pair(0, ENOMEM));
  for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  ASSERT_TRUE(ToState(a, IBV_QPS_ERR));  // those that were taken are all there
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(Wait(a.send_cq).wr_id, i);
  ExpectEmpty(a.send_cq);
}

TEST_P(PostingTest, ASlotIsFreeWhenItsCompletionWasPolled) {
  auto [a, b] = ConnectedPair({.max_send_wr = 4}, {.cqe = 1024, .max_recv_wr = 1024});
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  EXPECT_EQ(PostList(a, 4).second, 0);
  EXPECT_EQ(WaitFor(b.recv_cq, 4).size(), 4U);
  EXPECT_EQ(Post(a, Send(a, 9, 8)), ENOMEM) << "all are done, none was polled";
  for (int i = 0; i < 100; ++i) {  // exactly full all the time
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    ASSERT_EQ(Post(a, Send(a, 9, 8)), 0);
  }
  WaitFor(a.send_cq, 4);
}

TEST_P(PostingTest, UnsignalledSendsNeedASignalledOneToFreeTheirSlots) {
  auto [a, b] = ConnectedPair({.max_send_wr = 4});
  for (uint64_t i = 0; i < 8; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  for (uint64_t i = 0; i < 4; ++i) {
    SendWork work = Send(a, i, 8);
    work.wr.send_flags = i == 3 ? IBV_SEND_SIGNALED : 0;
    ASSERT_EQ(Post(a, work), 0);
  }
  EXPECT_EQ(Wait(a.send_cq).wr_id, 3U);
  ExpectEmpty(a.send_cq);
  EXPECT_EQ(PostList(a, 4).second, 0);
  WaitFor(a.send_cq, 4);
}

TEST_P(PostingTest, SignalAllCompletesEverything) {
  auto [a, b] = ConnectedPair({.signal_all = true});
  ASSERT_EQ(PostReceive(b, 1, 8), 0);
  SendWork work = Send(a, 2, 8);
  work.wr.send_flags = 0;
  ASSERT_EQ(Post(a, work), 0);
  EXPECT_EQ(Wait(a.send_cq).wr_id, 2U);
}

TEST_P(PostingTest, TooManySgesAreRefusedAndThoseBeforeStay) {
  auto [a, b] = ConnectedPair();
  for (uint64_t i = 0; i < 2; ++i) ASSERT_EQ(PostReceive(b, i, 8), 0);
  EXPECT_EQ(PostList(a, 4, 2), std::pair(2, EINVAL));
  EXPECT_EQ(WaitFor(a.send_cq, 2).back().wr_id, 1U);
  ExpectEmpty(a.send_cq);
}

TEST_P(PostingTest, AFullReceiveQueueRefusesTheRestOfAList) {
  auto [a, b] = ConnectedPair({.max_recv_wr = 4});
  std::array<ibv_recv_wr, 6> list = {};
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].wr_id = i;
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_recv(a.qp.get(), list.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &list[4]);
  ibv_recv_wr wide = {.wr_id = 9, .next = nullptr, .sg_list = nullptr, .num_sge = 5};
  EXPECT_EQ(ibv_post_recv(b.qp.get(), &wide, &bad), EINVAL);
  EXPECT_EQ(bad, &wide);
  ASSERT_TRUE(ToState(a, IBV_QPS_ERR));
  EXPECT_EQ(WaitFor(a.recv_cq, 4).back().wr_id, 3U);
}

TEST_P(PostingTest, ACircularListEnds) {
  auto [a, b] = ConnectedPair({.max_send_wr = 4, .max_recv_wr = 4});
  SendWork work = Send(a, 1, 0);
  work.wr.num_sge = 0;
  work.wr.next = &work.wr;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(a.qp.get(), &work.wr, &bad), ENOMEM);
  ibv_recv_wr receive = {.wr_id = 1, .next = &receive, .sg_list = nullptr, .num_sge = 0};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(ibv_post_recv(b.qp.get(), &receive, &bad_receive), ENOMEM);
}

TEST_P(PostingTest, AQueueOfNothingTakesNothing) {
  auto [a, b] = ConnectedPair({.max_send_wr = 0, .max_recv_wr = 0});
  EXPECT_EQ(Post(a, Send(a, 1, 8)), ENOMEM);
  EXPECT_EQ(PostReceive(a, 1, 8), ENOMEM);
}

TEST_P(PostingTest, UnknownOpcodesAreRefused) {
  auto [a, b] = ConnectedPair();
  SendWork work = Send(a, 1, 8);
  work.wr.opcode = IBV_WR_LOCAL_INV;
  EXPECT_EQ(Post(a, work), EINVAL);
  work.wr.opcode = IBV_WR_BIND_MW;
  EXPECT_EQ(Post(a, work), EINVAL);
}

TEST_P(PostingTest, TheCallersListMayGoAfterThePost) {
  auto [a, b] = ConnectedPair({}, {}, {.min_rnr_timer = 20});
  const auto data = Pattern(64, 7);
  std::memcpy(a.at(0), data.data(), data.size());
  SendWork work = Send(a, 1, 64);
  work.wr.sg_list = &work.sge;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(a.qp.get(), &work.wr, &bad), 0);
  work = {};  // before the peer has a receive
  ASSERT_EQ(PostReceive(b, 2, 64, 128), 0);
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 64U);
  EXPECT_EQ(std::memcmp(b.at(128), data.data(), data.size()), 0);
  EXPECT_EQ(Wait(a.send_cq).wr_id, 1U);
}

INSTANTIATE_TEST_SUITE_P(, PostingTest, kAllDevices, DeviceParam::NameOf);

class InlineTest : public DeviceTest {};

TEST_P(InlineTest, UpToTheLimitFromMemoryThatIsNotRegisteredAndGone) {
  const uint32_t limit = *first().MaxInlineBytes();
  ASSERT_EQ(limit, 236U);
  auto [a, b] = ConnectedPair({.max_inline_bytes = limit});
  for (const uint32_t bytes : {0U, 1U, 63U, 64U, limit}) {
    ASSERT_EQ(PostReceive(b, 1, 4096), 0);
    const auto expected_bytes = Pattern(bytes, bytes);
    auto data = std::make_unique<std::vector<std::byte>>(expected_bytes);
    SendWork work = Send(a, 2, bytes);
    work.sge.addr = reinterpret_cast<uintptr_t>(data->data());
    work.sge.lkey = 0xbad;
    work.wr.send_flags |= IBV_SEND_INLINE;
    ASSERT_EQ(Post(a, work), 0);
    std::fill(data->begin(), data->end(), std::byte{0xee});
    data.reset();
    EXPECT_EQ(Wait(b.recv_cq).byte_len, bytes);
    EXPECT_TRUE(std::equal(expected_bytes.begin(), expected_bytes.end(), b.at(0)));
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
  }
}

TEST_P(InlineTest, OneByteMoreIsRefused) {
  auto [a, b] = ConnectedPair({.max_inline_bytes = 100});
  ASSERT_EQ(PostReceive(b, 1, 4096), 0);
  SendWork work = Send(a, 2, 101);
  work.wr.send_flags |= IBV_SEND_INLINE;
  EXPECT_EQ(Post(a, work), EINVAL);
  ExpectEmpty(a.send_cq);
  ExpectEmpty(b.recv_cq);
}

TEST_P(InlineTest, WhatFetchesCannotBeInline) {
  auto [a, b] = ConnectedPair({.max_inline_bytes = 100});
  for (SendWork work : {Read(a, b, 1, 8), FetchAdd(a, b, 2, 1), CompareSwap(a, b, 3, 0, 1)}) {
    work.wr.send_flags |= IBV_SEND_INLINE;
    EXPECT_EQ(Post(a, work), EINVAL);
  }
  ExpectEmpty(a.send_cq);
}

TEST_P(InlineTest, SeveralPiecesAreJoined) {
  auto [a, b] = ConnectedPair({.max_inline_bytes = 100});
  ASSERT_EQ(PostReceive(b, 1, 4096), 0);
  const auto data = Pattern(90, 3);
  std::array<ibv_sge, 3> pieces = {};
  for (size_t i = 0; i < 3; ++i) {
    pieces[i] = {
        .addr = reinterpret_cast<uintptr_t>(data.data() + 30 * i), .length = 30, .lkey = 0};
  }
  SendWork work = Send(a, 2, 0);
  work.wr.sg_list = pieces.data();
  work.wr.num_sge = 3;
  work.wr.send_flags |= IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(ibv_post_send(a.qp.get(), &work.wr, &bad), 0);
  EXPECT_EQ(Wait(b.recv_cq).byte_len, 90U);
  EXPECT_EQ(std::memcmp(b.at(0), data.data(), 90), 0);
}

INSTANTIATE_TEST_SUITE_P(, InlineTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
