// The completion queue alone: order, capacity, and when it raises an event.
#include "transports/soft/engine/completion_queue.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace verbscope::soft {
namespace {

using Pushed = CompletionQueue::Pushed;

class CompletionQueueTest : public ::testing::Test {
 protected:
  Pushed Push(CompletionQueue& cq, uint64_t id, bool solicited = false,
              ibv_wc_status status = IBV_WC_SUCCESS, uint32_t qpn = 1) {
    ibv_wc wc = {};
    wc.wr_id = id;
    wc.status = status;
    wc.qp_num = qpn;
    return cq.Push(wc, solicited, &released_, 2);
  }
  uint64_t PollOne(CompletionQueue& cq) {
    ibv_wc wc;
    return cq.Poll(1, &wc) == 1 ? wc.wr_id : 0;
  }
  uint32_t released_ = 0;
};

TEST_F(CompletionQueueTest, KeepsOrderAndFreesSlotsWhenPolled) {
  CompletionQueue cq(3);
  for (uint64_t round = 0; round < 100; ++round) {
    for (uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(Push(cq, i), Pushed::kQuiet);
    EXPECT_TRUE(cq.Looks());
    EXPECT_EQ(released_, round * 6);
    for (uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(PollOne(cq), i);
    EXPECT_EQ(released_, round * 6 + 6);
    EXPECT_FALSE(cq.Looks());
    EXPECT_EQ(PollOne(cq), 0U);
  }
}

TEST_F(CompletionQueueTest, TheFirstThatDoesNotFitEndsIt) {
  CompletionQueue cq(3);
  for (uint64_t i = 1; i <= 3; ++i) EXPECT_EQ(Push(cq, i), Pushed::kQuiet);
  EXPECT_FALSE(cq.failed());
  EXPECT_EQ(Push(cq, 4), Pushed::kOverrun);
  EXPECT_TRUE(cq.failed());
  EXPECT_EQ(Push(cq, 5), Pushed::kDead);
  EXPECT_EQ(released_, 4U) << "what nobody can poll holds no slot";
  EXPECT_EQ(PollOne(cq), 1U) << "what was there before can be polled";
  EXPECT_EQ(Push(cq, 6), Pushed::kDead);
}

TEST_F(CompletionQueueTest, AnArmingRaisesOneEvent) {
  CompletionQueue cq(8);
  EXPECT_EQ(Push(cq, 1), Pushed::kQuiet);
  cq.Arm(false);
  EXPECT_EQ(cq.armed(), CompletionQueue::Armed::kAny) << "nothing for what was there already";
  EXPECT_EQ(Push(cq, 2), Pushed::kEvent);
  EXPECT_EQ(Push(cq, 3), Pushed::kQuiet);
  cq.Arm(false);
  cq.Arm(false);
  EXPECT_EQ(Push(cq, 4), Pushed::kEvent);
  EXPECT_EQ(Push(cq, 5), Pushed::kQuiet);
}

TEST_F(CompletionQueueTest, SolicitedOnlyPassesOverTheOthers) {
  CompletionQueue cq(8);
  cq.Arm(true);
  EXPECT_EQ(Push(cq, 1, false), Pushed::kQuiet);
  EXPECT_EQ(Push(cq, 2, true), Pushed::kEvent);
  cq.Arm(true);
  EXPECT_EQ(Push(cq, 3, false, IBV_WC_WR_FLUSH_ERR), Pushed::kEvent) << "errors are solicited";
}

TEST_F(CompletionQueueTest, TheStrongerArmingHolds) {
  CompletionQueue cq(8);
  cq.Arm(false);
  cq.Arm(true);
  EXPECT_EQ(Push(cq, 1, false), Pushed::kEvent);
  cq.Arm(true);
  cq.Arm(false);
  EXPECT_EQ(Push(cq, 2, false), Pushed::kEvent);
}

TEST_F(CompletionQueueTest, ModerationWaitsForTheCount) {
  CompletionQueue cq(8);
  cq.Moderate(3, 0);
  cq.Arm(false);
  EXPECT_EQ(Push(cq, 1), Pushed::kQuiet);
  EXPECT_EQ(Push(cq, 2), Pushed::kQuiet);
  EXPECT_EQ(Push(cq, 3), Pushed::kEvent);
  cq.Arm(false);
  EXPECT_EQ(Push(cq, 4), Pushed::kQuiet);
  EXPECT_EQ(Push(cq, 5, false, IBV_WC_WR_FLUSH_ERR), Pushed::kEvent) << "errors do not wait";
}

TEST_F(CompletionQueueTest, ModerationWaitsNoLongerThanThePeriod) {
  CompletionQueue cq(8);
  cq.Moderate(3, 10);
  cq.Arm(false);
  EXPECT_FALSE(cq.NextTimer().has_value());
  Push(cq, 1);
  EXPECT_EQ(cq.NextTimer(), 0U);
  EXPECT_FALSE(cq.Tick(1000));
  EXPECT_EQ(cq.NextTimer(), 11'000U);
  EXPECT_FALSE(cq.Tick(10'999));
  EXPECT_TRUE(cq.Tick(11'000));
  EXPECT_FALSE(cq.Tick(30'000));
  EXPECT_FALSE(cq.NextTimer().has_value());
  cq.Arm(false);
  Push(cq, 2);
  Push(cq, 3);
  EXPECT_EQ(Push(cq, 4), Pushed::kEvent);
  EXPECT_FALSE(cq.NextTimer().has_value());
}

TEST_F(CompletionQueueTest, ANewModerationFreesWhatTheOldOneHeldBack) {
  CompletionQueue cq(8);
  cq.Moderate(3, 0);
  cq.Arm(false);
  Push(cq, 1);
  EXPECT_FALSE(cq.NextTimer().has_value());
  cq.Moderate(0, 0);
  EXPECT_EQ(cq.NextTimer(), 0U);
  EXPECT_TRUE(cq.Tick(1000));
}

TEST_F(CompletionQueueTest, ResizeKeepsWhatIsThere) {
  CompletionQueue cq(4);
  for (uint64_t i = 1; i <= 4; ++i) Push(cq, i);
  PollOne(cq);
  Push(cq, 5);
  EXPECT_FALSE(cq.Resize(3));
  EXPECT_TRUE(cq.Resize(5));
  EXPECT_EQ(cq.capacity(), 5U);
  EXPECT_TRUE(cq.Looks());
  EXPECT_EQ(Push(cq, 6), Pushed::kQuiet);
  for (uint64_t i = 2; i <= 6; ++i) EXPECT_EQ(PollOne(cq), i);
  EXPECT_FALSE(cq.Looks());
}

TEST_F(CompletionQueueTest, PurgeTakesTheCompletionsOfOneQp) {
  CompletionQueue cq(8);
  for (uint64_t i = 1; i <= 6; ++i) Push(cq, i, false, IBV_WC_SUCCESS, i % 2 == 0 ? 9 : 1);
  cq.Purge(9);
  EXPECT_EQ(released_, 6U) << "an SRQ gets its slots back";
  EXPECT_EQ(cq.size(), 3U);
  for (const uint64_t id : {1, 3, 5}) EXPECT_EQ(PollOne(cq), id);
}

TEST_F(CompletionQueueTest, AHeldCompletionIsNoneOfTheQueueUntilItIsPushed) {
  CompletionQueue cq(1);
  ibv_wc wc = {};
  wc.wr_id = 7;
  wc.qp_num = 9;
  cq.Hold({.wc = wc, .solicited = false, .released = &released_, .queue_slots = 2});
  EXPECT_TRUE(cq.holds());
  EXPECT_EQ(cq.size(), 0U);
  EXPECT_EQ(Push(cq, 1), Pushed::kQuiet);
  cq.Purge(1);
  EXPECT_EQ(released_, 2U);
  ASSERT_TRUE(cq.holds());
  const auto held = cq.TakeHeld();
  EXPECT_EQ(held->wc.wr_id, 7U);
  EXPECT_FALSE(cq.holds());
  cq.Hold(*held);
  cq.Purge(9);
  EXPECT_FALSE(cq.holds());
  EXPECT_EQ(released_, 4U);
}

}  // namespace
}  // namespace verbscope::soft
