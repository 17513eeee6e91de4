#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/plan/operation.h"
#include "core/plan/plan.h"

namespace verbscope {
namespace {

Plan PlanOf(std::string_view command) {
  Plan plan;
  plan.command = command;
  if (plan.command == "atomic-lat") plan.sizes_bytes = {8};
  return plan;
}

TEST(Combination, EveryCommandRunsWithItsDefaults) {
  for (const Operation& operation : Operations()) {
    const Status status = CheckCombination(PlanOf(operation.command));
    EXPECT_TRUE(status) << operation.command << ": " << status.error().message;
  }
}

struct Refused {
  std::string command;
  void (*change)(Plan& plan);
  std::string named;  // in the message
};

class RefusedTest : public testing::TestWithParam<Refused> {};

TEST_P(RefusedTest, IsRefusedNamingTheOption) {
  Plan plan = PlanOf(GetParam().command);
  GetParam().change(plan);
  const Status status = CheckCombination(plan);
  ASSERT_FALSE(status) << GetParam().command;
  EXPECT_EQ(status.error().error_class, ErrorClass::kUsage);
  EXPECT_THAT(status.error().message, testing::HasSubstr(GetParam().named));
  EXPECT_FALSE(status.error().next_step.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedTest,
    testing::Values(
        Refused{"send-lat", [](Plan& p) { p.qps = 2; }, "--qps"},
        Refused{"send-lat", [](Plan& p) { p.tx_depth = 2; }, "--tx-depth"},
        Refused{"send-lat", [](Plan& p) { p.rx_depth = 1; }, "receives"},
        Refused{"read-lat", [](Plan& p) { p.post_list = 2; }, "--post-list"},
        Refused{"write-lat",
                [](Plan& p) {
                  p.sizes_bytes = {0, 1};
                },
                "--size 0"},
        Refused{"write-lat", [](Plan& p) { p.rate_per_s = 10; }, "--rate"},
        Refused{"send-bw", [](Plan& p) { p.rate_per_s = 10; }, "--rate"},
        Refused{"send-lat", [](Plan& p) { p.rate_per_s = 0.4; }, "no message is due"},
        Refused{"send-lat",
                [](Plan& p) {
                  p.rate_per_s = 10;
                  p.tx_depth = 1000;
                },
                "--rx-depth"},
        Refused{"atomic-lat", [](Plan& p) { p.sizes_bytes = {16}; }, "--size"},
        Refused{"atomic-lat", [](Plan& p) { p.imm = true; }, "--imm"},
        Refused{"read-bw", [](Plan& p) { p.imm = true; }, "--imm"},
        Refused{"read-lat",
                [](Plan& p) { p.inline_mode = {.kind = InlineKind::kBytes, .bytes = 8}; },
                "--inline"},
        Refused{"send-lat", [](Plan& p) { p.bidirectional = true; }, "--bidirectional"}));

TEST(Combination, WithImmediateAWriteMayCarryNothingAndHaveARate) {
  Plan plan = PlanOf("write-lat");
  plan.imm = true;
  plan.sizes_bytes = {0};
  plan.rate_per_s = 1000;
  plan.tx_depth = 16;
  EXPECT_TRUE(CheckCombination(plan));
}

struct Waits {
  std::string command;
  bool requester;
  WaitKind wait;
  bool allowed;
};

class WaitTest : public testing::TestWithParam<Waits> {};

TEST_P(WaitTest, IsJudgedForEachSide) {
  Plan plan = PlanOf(GetParam().command);
  const Status status = CheckWait(plan, GetParam().requester, {.kind = GetParam().wait});
  EXPECT_EQ(status.has_value(), GetParam().allowed);
  if (!status) {
    EXPECT_THAT(status.error().message, testing::HasSubstr("--wait"));
    EXPECT_FALSE(status.error().next_step.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(All, WaitTest,
                         testing::Values(Waits{"send-lat", true, WaitKind::kSolicited, true},
                                         Waits{"write-lat", true, WaitKind::kEvent, false},
                                         Waits{"write-lat", false, WaitKind::kHybrid, false},
                                         Waits{"write-lat", false, WaitKind::kBusyPause, true},
                                         Waits{"read-lat", true, WaitKind::kSolicited, false},
                                         Waits{"read-lat", false, WaitKind::kEvent, true},
                                         Waits{"send-bw", true, WaitKind::kSolicited, false},
                                         Waits{"send-bw", false, WaitKind::kSolicited, true},
                                         Waits{"imm", false, WaitKind::kEvent, false},
                                         Waits{"rnr-test", true, WaitKind::kBusy, true}));

TEST(Combination, InBothDirectionsNoSideCanWaitForSolicitedMessages) {
  Plan plan = PlanOf("read-bw");
  plan.bidirectional = true;
  EXPECT_FALSE(CheckWait(plan, /*requester=*/false, {.kind = WaitKind::kSolicited}));
}

TEST(Combination, CountedMessagesAtARateTakeAKnownTime) {
  Plan plan = PlanOf("send-lat");
  plan.iterations = 5000;
  plan.warmup_iterations = 0;
  EXPECT_EQ(PlannedNs(plan), 0);
  plan.rate_per_s = 1000;
  EXPECT_EQ(PlannedNs(plan), 5'000'000'000);
}

// A full send queue must hold a signalled request, or nobody learns that it has room.
TEST(Combination, AStreamSignalsWithinItsDepth) {
  Plan plan = PlanOf("write-bw");
  plan.tx_depth = 16;
  plan.signal_every = 64;
  const Expected<Plan> bounded = Bound(plan, {});
  ASSERT_TRUE(bounded);
  EXPECT_EQ(bounded->signal_every, 16u);
  ASSERT_EQ(bounded->changes.size(), 1u);
  EXPECT_EQ(bounded->changes[0].field, "signal_every");
}

}  // namespace
}  // namespace verbscope
