#include "transports/ibverbs/live_objects.h"

#include <gtest/gtest.h>

#include <array>

namespace verbscope {
namespace {

TEST(LiveObjectsTest, NamesWhatHoldsAProtectionDomain) {
  LiveObjects live;
  ibv_pd pd = {}, other_pd = {};
  ibv_mr mr = {};
  mr.pd = &pd;
  mr.lkey = 0x1234;
  mr.length = 64;
  ibv_qp qp = {}, other_qp = {};
  qp.pd = &pd;
  qp.qp_num = 0x11;
  other_qp.pd = &other_pd;
  live.Add(&mr);
  live.Add(&qp);
  live.Add(&other_qp);
  EXPECT_EQ(live.HoldersOf(&pd), Describe(&mr) + ", QP 0x11");
  live.Remove(&mr);
  EXPECT_EQ(live.HoldersOf(&pd), "QP 0x11");
  live.Remove(&qp);
  EXPECT_EQ(live.HoldersOf(&pd), "");
  EXPECT_EQ(live.size(), 1u);
}

TEST(LiveObjectsTest, AQpHoldsBothItsCqs) {
  LiveObjects live;
  ibv_cq send_cq = {}, recv_cq = {}, idle_cq = {};
  ibv_qp qp = {};
  qp.qp_num = 0x11;
  qp.send_cq = &send_cq;
  qp.recv_cq = &recv_cq;
  live.Add(&qp);
  EXPECT_EQ(live.HoldersOf(&send_cq), "QP 0x11");
  EXPECT_EQ(live.HoldersOf(&recv_cq), "QP 0x11");
  EXPECT_EQ(live.HoldersOf(&idle_cq), "");
}

TEST(LiveObjectsTest, ACqHoldsItsChannel) {
  LiveObjects live;
  ibv_comp_channel channel = {};
  ibv_cq cq = {};
  cq.channel = &channel;
  cq.cqe = 255;
  live.Add(&cq);
  EXPECT_EQ(live.HoldersOf(&channel), Describe(&cq));
  EXPECT_NE(Describe(&cq).find("(255 entries)"), std::string::npos);
}

TEST(LiveObjectsTest, ManyHoldersAreCountedNotListed) {
  LiveObjects live;
  ibv_pd pd = {};
  std::array<ibv_qp, 7> qps = {};
  for (size_t i = 0; i < qps.size(); ++i) {
    qps[i].pd = &pd;
    qps[i].qp_num = static_cast<uint32_t>(0x11 + i);
    live.Add(&qps[i]);
  }
  EXPECT_EQ(live.HoldersOf(&pd), "QP 0x11, QP 0x12, QP 0x13, QP 0x14 and 3 more");
}

TEST(LiveObjectsTest, EventsAreCountedPerCq) {
  LiveObjects live;
  ibv_cq a = {}, b = {};
  live.Add(&a);
  live.Add(&b);
  for (int i = 0; i < 5; ++i) live.EventTaken(&a);
  live.EventTaken(&b);
  live.EventsAcknowledged(&a, 4);
  live.EventsAcknowledged(&b, 1);
  const EventCount of_a = live.Remove(&a);
  EXPECT_EQ(of_a.taken, 5u);
  EXPECT_EQ(of_a.acknowledged, 4u);
  EXPECT_EQ(of_a.owed(), 1u);
  EXPECT_EQ(live.Remove(&b).owed(), 0u);
  EXPECT_EQ(live.size(), 0u);
}

TEST(LiveObjectsTest, ACqThatCouldNotBeDestroyedKeepsItsCount) {
  LiveObjects live;
  ibv_cq cq = {};
  live.Add(&cq);
  live.EventTaken(&cq);
  live.Add(&cq, live.Remove(&cq));
  EXPECT_EQ(live.Remove(&cq).taken, 1u);
}

TEST(LiveObjectsTest, AnAddressUsedAgainStartsFromZero) {
  LiveObjects live;
  ibv_cq cq = {};
  live.Add(&cq);
  live.EventTaken(&cq);
  live.Remove(&cq);
  live.Add(&cq);
  EXPECT_EQ(live.Remove(&cq).taken, 0u);
}

TEST(EventCountTest, MoreAcknowledgedThanTakenOwesNothing) {
  EXPECT_EQ((EventCount{.taken = 2, .acknowledged = 3}).owed(), 0u);
}

}  // namespace
}  // namespace verbscope
