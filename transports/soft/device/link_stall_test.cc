// A link that stands still for a while, under more messages than any queue between the two holds.
#include "transports/soft/device/device_fixture.h"

namespace verbscope::soft {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStall = milliseconds(30);
constexpr uint64_t kMessages = 6000;
constexpr uint64_t kFirstLate = 1000;

class LinkStallTest : public DeviceTest {
 protected:
  void Run(FaultDirection direction) {
    FaultRule rule;
    rule.action = FaultAction::kStall;
    rule.direction = direction;
    rule.packets = FaultClass::kSend;
    rule.nth = kFirstLate;
    rule.delay = kStall;
    SoftOptions options;
    options.fault.rules.push_back(rule);
    OpenDevices(options);
    const EndOptions large = {
        .cqe = 2 * kMessages, .max_send_wr = kMessages, .max_recv_wr = kMessages};
    auto [a, b] = ConnectedPair(large, large, {.timeout = 20, .retry_cnt = 0});
    for (uint64_t i = 1; i <= kMessages; ++i) ASSERT_EQ(PostReceive(b, i, 64), 0);
    const auto begun = std::chrono::steady_clock::now();
    for (uint64_t i = 1; i <= kMessages; ++i) {
      SendWork work = Send(a, i, 48);
      if (i != kMessages) work.wr.send_flags = 0;
      ASSERT_EQ(Post(a, work), 0);
    }
    for (uint64_t i = 1; i <= kMessages; ++i) {
      const ibv_wc wc = Wait(b.recv_cq);
      ASSERT_EQ(wc.wr_id, i);
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      if (i == kFirstLate) {
        EXPECT_GE(std::chrono::steady_clock::now() - begun, kStall);
      }
    }
    EXPECT_EQ(Wait(a.send_cq).status, IBV_WC_SUCCESS);
    EXPECT_EQ(Counter(*b.device, "out_of_seq_request"), 0U);
    EXPECT_EQ(Counter(*b.device, "duplicate_request"), 0U);
    End& stalled = direction == FaultDirection::kSend ? a : b;
    EXPECT_EQ(Counter(*stalled.device, "stalled"), 1U);
  }
};

TEST_P(LinkStallTest, WhatIsSentMeanwhileComesLaterAndInOrder) { Run(FaultDirection::kSend); }

TEST_P(LinkStallTest, WhatArrivesMeanwhileComesLaterAndInOrder) { Run(FaultDirection::kReceive); }

// The program does nothing but wait: the stall ends by itself.
TEST_P(LinkStallTest, ASleeperIsWokenAfterTheStall) {
  FaultRule rule;
  rule.action = FaultAction::kStall;
  rule.packets = FaultClass::kSend;
  rule.nth = 1;
  rule.delay = kStall;
  SoftOptions options;
  options.fault.rules.push_back(rule);
  OpenDevices(options);
  auto [a, b] = ConnectedPair({}, {.channel = true}, {.timeout = 20});
  ASSERT_EQ(PostReceive(b, 1, 64), 0);
  ASSERT_EQ(ibv_req_notify_cq(b.recv_cq, 0), 0);
  const auto begun = std::chrono::steady_clock::now();
  ASSERT_EQ(Post(a, Send(a, 1, 8)), 0);
  const Expected<ibv_cq*> event = b.device->GetCqEvent(b.channel.get());
  ASSERT_TRUE(event && *event == b.recv_cq);
  b.device->AckCqEvents(*event, 1);
  EXPECT_GE(std::chrono::steady_clock::now() - begun, kStall);
  EXPECT_EQ(Wait(b.recv_cq).wr_id, 1U);
}

INSTANTIATE_TEST_SUITE_P(, LinkStallTest, kAllDevices, DeviceParam::NameOf);

}  // namespace
}  // namespace verbscope::soft
