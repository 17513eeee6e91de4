#include "core/endpoint/endpoint.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "core/endpoint/endpoint_test_util.h"

namespace verbscope {
namespace {

TEST(EndpointTest, InfoTellsThePeerEverythingItNeeds) {
  EndpointPair pair;
  const EndpointInfo info = pair.a->Info();
  EXPECT_EQ(info.qps.at(0).qpn, pair.a->qp()->qp_num);
  EXPECT_LE(info.qps.at(0).psn, 0xffffffu);
  EXPECT_EQ(info.mtu_bytes, 1024u);
  EXPECT_NE(info.rkey, 0u);
  EXPECT_EQ(info.buffer_bytes,
            256u);  // 64 bytes twice, each with a guard of 64  // 64 to send, 64 to receive
  EXPECT_FALSE(info.qps.at(0).blob.empty());
  EXPECT_FALSE(info.wants_solicited);
}

TEST(EndpointTest, ConnectedQueuePairsAreReadyToSendWithReceivesPosted) {
  Plan plan;
  plan.rx_depth = 7;
  EndpointPair pair(plan);
  EXPECT_EQ(pair.fabric->Look(pair.a->qp()).state, IBV_QPS_RTS);
  EXPECT_EQ(pair.fabric->Look(pair.b->qp()).recv_slots_used, 7u);
  EXPECT_TRUE(pair.fabric->Look(pair.b->qp()).blob_accepted);
}

TEST(EndpointTest, CloseDestroysEverythingInReverseOrderAndTwiceIsHarmless) {
  EndpointPair pair({}, 64, {.kind = WaitKind::kEvent});
  EXPECT_TRUE(pair.a->Close());
  EXPECT_TRUE(pair.b->Close());
  EXPECT_TRUE(pair.a->Close());
  const FakeLive live = pair.fabric->live();
  EXPECT_EQ(live.total() - live.devices, 0);
}

TEST(EndpointTest, CloseReportsWhatCouldNotBeDestroyed) {
  EndpointPair pair;
  pair.device_a->FailNextDestroy(EBUSY);
  const Status closed = pair.a->Close();
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().errno_value, EBUSY);
}

TEST(EndpointTest, SizeZeroNeedsNoMemory) {
  EndpointPair pair({}, 0);
  EXPECT_EQ(pair.fabric->live().mrs, 0);
  EXPECT_EQ(pair.fabric->live().buffers, 0);
  EXPECT_EQ(pair.a->Info().rkey, 0u);
  EXPECT_FALSE(pair.a->sends_inline());
}

TEST(EndpointTest, InlineWhenItFitsUnlessTurnedOff) {
  EXPECT_TRUE(EndpointPair({}, 236).a->sends_inline());  // the fake's limit
  EXPECT_FALSE(EndpointPair({}, 237).a->sends_inline());
  Plan off;
  off.inline_mode.kind = InlineKind::kOff;
  EXPECT_FALSE(EndpointPair(off, 8).a->sends_inline());
  Plan up_to_32;
  up_to_32.inline_mode = {.kind = InlineKind::kBytes, .bytes = 32};
  EXPECT_TRUE(EndpointPair(up_to_32, 32).a->sends_inline());
  EXPECT_FALSE(EndpointPair(up_to_32, 33).a->sends_inline());
}

class EndpointLimitTest : public testing::Test {
 protected:
  Expected<std::unique_ptr<Endpoint>> Create(const Plan& plan, uint64_t size = 64) {
    EndpointOptions options = options_;  // made before any fault is armed
    options.size_bytes = size;
    return Endpoint::Create(device_, plan, options);
  }

  std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  FakeDevice device_{fabric_, DefaultFakeDevice()};
  EndpointOptions options_ = EndpointPair::Options(device_, 64);
};

TEST_F(EndpointLimitTest, InlineAboveTheLimitNamesTheLimit) {
  Plan plan;
  plan.inline_mode = {.kind = InlineKind::kBytes, .bytes = 1000};
  const auto endpoint = Create(plan);
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().error_class, ErrorClass::kSetup);
  EXPECT_NE(endpoint.error().message.find("236"), std::string::npos);
}

TEST_F(EndpointLimitTest, MessageAboveThePortsLimitIsRefused) {
  EndpointOptions options = EndpointPair::Options(device_, 4097);
  options.path.port.max_message_bytes = 4096;
  const auto endpoint = Endpoint::Create(device_, Plan{}, options);
  ASSERT_FALSE(endpoint);
  EXPECT_EQ(endpoint.error().error_class, ErrorClass::kSetup);
}

// Whatever control call fails, the error comes back and nothing is left behind.
TEST_F(EndpointLimitTest, EveryFailingControlCallLeavesNothingBehind) {
  Plan plan;
  const int before = device_.control_calls();
  { ASSERT_TRUE(Create(plan)); }
  const int calls = device_.control_calls() - before;
  ASSERT_GE(calls, 7);
  for (int nth = 1; nth <= calls; ++nth) {
    device_.FailControlCall({.nth = nth, .errno_value = ENOMEM, .call = {}});
    const auto endpoint = Create(plan);
    device_.FailControlCall({});
    ASSERT_FALSE(endpoint) << "call " << nth;
    EXPECT_EQ(endpoint.error().errno_value, ENOMEM);
    EXPECT_EQ(fabric_->live().total(), 1) << "call " << nth;  // the device
  }
}

}  // namespace
}  // namespace verbscope
