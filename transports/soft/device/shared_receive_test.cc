// Shared receive queues.
#include <cerrno>
#include <cstring>
#include <memory>

#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

class SharedReceiveTest : public DeviceTest {
 protected:
  // On the second device: memory and an SRQ, and QPs at both ends that use it.
  void Make(uint32_t max_wr, size_t pairs, const ConnectOptions& options = {}) {
    memory_ = MakeEnd(second());
    srq_ = Must(second().CreateSrq({.pd = memory_.pd.get(), .max_wr = max_wr, .max_sge = 4}));
    for (size_t i = 0; i < pairs; ++i) {
      pairs_.push_back(
          std::make_unique<std::pair<End, End>>(ConnectedPair({}, {.srq = srq_.get()}, options)));
    }
  }
  End& left(size_t i = 0) { return pairs_[i]->first; }
  End& right(size_t i = 0) { return pairs_[i]->second; }
  int PostShared(uint64_t id, uint32_t bytes = 64) {
    return PostSharedReceive(srq_.get(), memory_, id, bytes);
  }
  ~SharedReceiveTest() override {
    while (!pairs_.empty()) pairs_.pop_back();
    EXPECT_TRUE(srq_.Close());
  }

  End memory_;
  Srq srq_;
  std::vector<std::unique_ptr<std::pair<End, End>>> pairs_;
};

TEST_P(SharedReceiveTest, ManyQpsAreServedInTheOrderOfArrival) {
  Make(64, 10);
  for (uint64_t i = 0; i < 60; ++i) ASSERT_EQ(PostShared(i), 0);
  uint64_t next = 0;
  for (int round = 0; round < 6; ++round) {
    for (size_t i = 0; i < 10; ++i) {
      ASSERT_EQ(Post(left(i), Send(left(i), 100 + i, 64)), 0);
      EXPECT_EQ(Wait(left(i).send_cq).status, IBV_WC_SUCCESS);
      const ibv_wc wc = Wait(right(i).recv_cq);
      EXPECT_EQ(wc.wr_id, next++);
      EXPECT_EQ(wc.qp_num, right(i).qp->qp_num);
    }
  }
}

TEST_P(SharedReceiveTest, AQpThatHasOneTakesNoReceivesOfItsOwn) {
  Make(8, 1);
  errno = 0;
  EXPECT_EQ(PostReceive(right(), 1, 8), EINVAL);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(right().qp->srq, srq_.get());
}

TEST_P(SharedReceiveTest, FullAndTooManySges) {
  Make(4, 1);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(PostShared(i), 0);
  errno = 0;
  EXPECT_EQ(PostShared(5), ENOMEM);
  EXPECT_EQ(errno, ENOMEM);
  ibv_recv_wr wide = {.wr_id = 9, .next = nullptr, .sg_list = nullptr, .num_sge = 5};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq_.get(), &wide, &bad), EINVAL);
  EXPECT_EQ(bad, &wide);
  // A slot is free when its completion was polled.
  ASSERT_EQ(Post(left(), Send(left(), 1, 64)), 0);
  Wait(left().send_cq);
  EXPECT_EQ(PostShared(6), ENOMEM);
  Wait(right().recv_cq);
  EXPECT_EQ(PostShared(6), 0);
}

TEST_P(SharedReceiveTest, ACircularListEnds) {
  Make(4, 0);
  ibv_recv_wr receive = {.wr_id = 1, .next = &receive, .sg_list = nullptr, .num_sge = 0};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_srq_recv(srq_.get(), &receive, &bad), ENOMEM);
  EXPECT_EQ(bad, &receive);
}

TEST_P(SharedReceiveTest, TheLimitEventComesOnceWhenFewerAreLeft) {
  Make(16, 1);
  for (uint64_t i = 0; i < 10; ++i) ASSERT_EQ(PostShared(i), 0);
  ASSERT_TRUE(second().SetSrqLimit(srq_.get(), 8));
  AsyncEvents(second());
  const auto deliver = [this] {
    ASSERT_EQ(Post(left(), Send(left(), 1, 64)), 0);
    Wait(left().send_cq);
    Wait(right().recv_cq);
  };
  deliver();
  deliver();
  EXPECT_TRUE(AsyncEvents(second()).empty()) << "eight are left";
  deliver();
  EXPECT_EQ(AsyncEvents(second()), std::vector<std::string>{"SRQ_LIMIT_REACHED"});
  deliver();
  EXPECT_TRUE(AsyncEvents(second()).empty()) << "once per limit set";
  ASSERT_TRUE(second().SetSrqLimit(srq_.get(), 6));
  deliver();
  EXPECT_EQ(AsyncEvents(second()), std::vector<std::string>{"SRQ_LIMIT_REACHED"});
  EXPECT_FALSE(second().SetSrqLimit(srq_.get(), 17));
  EXPECT_TRUE(second().SetSrqLimit(srq_.get(), 0));
}

TEST_P(SharedReceiveTest, AFlushLeavesTheReceivesToTheOtherQps) {
  Make(16, 2);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(PostShared(i), 0);
  AsyncEvents(second());
  ASSERT_TRUE(ToState(right(0), IBV_QPS_ERR));
  EXPECT_EQ(AsyncEvents(second()), expected().error_events
                                       ? std::vector<std::string>{"QP_LAST_WQE_REACHED"}
                                       : std::vector<std::string>{});
  ExpectEmpty(right(0).recv_cq);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(Post(left(1), Send(left(1), i, 64)), 0);
    EXPECT_EQ(Wait(right(1).recv_cq).wr_id, i);
  }
}

TEST_P(SharedReceiveTest, WhatAQpTookAndNeverShowedIsFreeWhenItGoes) {
  Make(4, 2);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(PostShared(i), 0);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(Post(left(0), Send(left(0), i, 64)), 0);
  EXPECT_EQ(WaitFor(left(0).send_cq, 4).size(), 4U);
  EXPECT_EQ(PostShared(9), ENOMEM);
  ASSERT_TRUE(right(0).qp.Close());
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(PostShared(10 + i), 0);
}

TEST_P(SharedReceiveTest, WithoutReceivesSendersAreToldToWait) {
  Make(8, 2, {.rnr_retry = 7});
  ASSERT_EQ(Post(left(0), Send(left(0), 1, 64)), 0);
  ASSERT_EQ(Post(left(1), WriteImmediate(left(1), right(1), 1, 8, 3)), 0);
  ASSERT_TRUE(
      PollUntil(left(0).send_cq, [this] { return Counter(second(), "send_rnr_err") >= 6; }));
  ASSERT_EQ(PostShared(1), 0);
  ASSERT_EQ(PostShared(2), 0);
  EXPECT_EQ(Wait(left(0).send_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Wait(left(1).send_cq).status, IBV_WC_SUCCESS);
  Wait(right(0).recv_cq);
  Wait(right(1).recv_cq);
}

TEST_P(SharedReceiveTest, MemoryMustBeOfTheDomainOfTheQueueNotOfTheQp) {
  Make(8, 2);  // each QP has a domain of its own
  ASSERT_EQ(PostShared(1), 0);
  ASSERT_EQ(Post(left(0), Send(left(0), 1, 64)), 0);
  EXPECT_EQ(Wait(right(0).recv_cq).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Wait(left(0).send_cq).status, IBV_WC_SUCCESS);
  ASSERT_EQ(PostSharedReceive(srq_.get(), right(1), 2, 64), 0);
  ASSERT_EQ(Post(left(1), Send(left(1), 2, 64)), 0);
  EXPECT_EQ(Wait(right(1).recv_cq).status, expected().bad_receive_responder);
  EXPECT_EQ(Wait(left(1).send_cq).status, IBV_WC_REM_OP_ERR);
}

TEST_P(SharedReceiveTest, ItIsBusyWhileAQpUsesIt) {
  Make(8, 1);
  errno = 0;
  const Status busy = srq_.Close();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().errno_value, EBUSY);
  EXPECT_EQ(errno, EBUSY);
}

INSTANTIATE_TEST_SUITE_P(, SharedReceiveTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
