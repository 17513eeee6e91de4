// Whole runs of verb-cost in this process, on the fake device, which lacks what many devices lack:
// ibv_wr_* and ibv_start_poll.
#include "core/cost/run_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "core/base/interrupt.h"
#include "core/cost/cost_plan.h"
#include "core/session/context.h"
#include "transports/device.h"
#include "transports/fake/fake_device.h"

namespace verbscope {
namespace {

CostPlan SmallPlan() {
  CostPlan plan;
  plan.calls = 20;
  plan.warmup_calls = 4;
  plan.row_ns = 100'000'000;
  plan.max_bytes = 1 << 20;
  return plan;
}

class RunCostTest : public testing::Test {
 protected:
  Record Run(DeviceProvider& provider, const CostPlan& plan, const std::string& device) {
    Record record;
    record.command = "verb-cost";
    const SessionContext context{
        .provider = provider, .interrupt = interrupt_, .notice = [](const std::string&) {}};
    CostOptions options{.plan = plan, .settings = {}};
    options.settings.device = device;
    RunVerbCost(context, options, record);
    return record;
  }
  Record RunFake(const CostPlan& plan) { return Run(fake_, plan, "fake0"); }

  Interrupt interrupt_;
  std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  FakeProvider fake_{fabric_, {DefaultFakeDevice("fake0", 1)}};
};

const CheckRow* FindSkip(const Record& record, const std::string& name) {
  const auto found = std::ranges::find(record.checks, name, &CheckRow::name);
  return found == record.checks.end() ? nullptr : &*found;
}

std::set<std::string> Ops(const Record& record) {
  std::set<std::string> ops;
  for (const Result& result : record.results) ops.insert(result.point.op);
  return ops;
}

std::string ErrorOf(const Record& record) { return record.error ? record.error->ToText() : ""; }

TEST_F(RunCostTest, EveryVerbThatTheDeviceHasHasRows) {
  const Record record = RunFake(SmallPlan());
  ASSERT_EQ(record.verdict, "pass") << ErrorOf(record);
  EXPECT_EQ(Ops(record), (std::set<std::string>{"empty_timing", "post_send", "post_recv", "poll_cq",
                                                "req_notify_cq", "get_cq_event", "ack_cq_events",
                                                "reg_mr", "dereg_mr", "create_qp", "destroy_qp",
                                                "create_cq", "destroy_cq", "modify_qp"}));
  for (const Result& result : record.results) {
    const Metrics& metrics = result.metrics;
    ASSERT_TRUE(metrics.latency && metrics.cost) << result.point.op;
    EXPECT_TRUE(result.complete);
    EXPECT_GE(metrics.latency->samples, 3u) << result.point.op;
    EXPECT_LE(metrics.latency->samples, 20u) << result.point.op;
    EXPECT_EQ(metrics.cost->calls, metrics.latency->samples) << result.point.op;
    EXPECT_EQ(metrics.latency->definition, "call");
    EXPECT_EQ(metrics.latency->ended_by, "return");
    ASSERT_TRUE(metrics.warmup) << result.point.op;
    EXPECT_LE(metrics.warmup->samples, 4u);
    EXPECT_TRUE(metrics.cost->overhead_ns) << result.point.op;
  }
}

TEST_F(RunCostTest, NoTwoRowsAreTheSamePoint) {
  const Record record = RunFake(SmallPlan());
  for (size_t i = 0; i < record.results.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(record.results[i].point == record.results[j].point)
          << record.results[i].point.op << " " << i << " and " << j;
    }
  }
}

TEST_F(RunCostTest, AGroupHasNoMoreRowsThanItsTimeWasPlannedFor) {
  for (const VerbGroup group : AllVerbGroups()) {
    CostPlan plan = SmallPlan();
    plan.groups = {group};
    const Record record = RunFake(plan);
    ASSERT_FALSE(record.error) << Name(group) << ": " << ErrorOf(record);
    EXPECT_LE(record.results.size(), RowsOf(group) + 1) << Name(group);
    const bool missing = group == VerbGroup::kExtendedPost || group == VerbGroup::kStartPoll;
    EXPECT_EQ(record.results.size() > 1, !missing) << Name(group);
  }
}

TEST_F(RunCostTest, WorkPerCallIsWhatOneRequestIsReckonedBy) {
  CostPlan plan = SmallPlan();
  plan.groups = {VerbGroup::kPostSend};
  const Record record = RunFake(plan);
  ASSERT_EQ(record.verdict, "pass") << ErrorOf(record);
  const auto list = std::ranges::find_if(
      record.results, [](const Result& result) { return result.point.post_list == 64u; });
  ASSERT_NE(list, record.results.end());
  EXPECT_EQ(list->metrics.cost->per_call_work, 64u);
  for (const PercentileRow& row : list->metrics.latency->percentiles) {
    if (row.percent != "50") continue;
    ASSERT_TRUE(row.value_ns && list->metrics.cost->ns_per_request);
    EXPECT_DOUBLE_EQ(*list->metrics.cost->ns_per_request,
                     static_cast<double>(*row.value_ns) / 64.0);
  }
}

TEST_F(RunCostTest, WhatTheDeviceDoesNotHaveIsSkippedWithAReason) {
  CostPlan plan = SmallPlan();
  plan.groups = {VerbGroup::kPostSend, VerbGroup::kExtendedPost, VerbGroup::kStartPoll,
                 VerbGroup::kRegister};
  const Record record = RunFake(plan);
  ASSERT_EQ(record.verdict, "pass") << ErrorOf(record);
  for (const char* name : {"ibv_wr", "start_poll", "reg_mr 1 GiB"}) {
    const CheckRow* skip = FindSkip(record, name);
    ASSERT_NE(skip, nullptr) << name;
    EXPECT_EQ(skip->status, "skip");
    EXPECT_FALSE(skip->why.empty());
  }
  EXPECT_FALSE(Ops(record).contains("ibv_wr"));
}

TEST_F(RunCostTest, ARunThatMeasuredNothingHasNoVerdict) {
  CostPlan plan = SmallPlan();
  plan.groups = {VerbGroup::kStartPoll};
  const Record record = RunFake(plan);
  EXPECT_EQ(record.verdict, "inconclusive");
  EXPECT_EQ(record.exit_code, 4);
}

TEST_F(RunCostTest, WithoutADeviceItCannotStart) {
  FakeProvider none(fabric_, {});
  const Record record = Run(none, SmallPlan(), "");
  EXPECT_EQ(record.exit_code, 2);
  ASSERT_TRUE(record.error);
  EXPECT_NE(record.error->next_step.find("--device soft"), std::string::npos);
}

TEST_F(RunCostTest, AnInterruptLeavesWhatWasMeasuredUntilThen) {
  CostPlan plan = SmallPlan();
  plan.calls = kMaxCostCalls;
  plan.row_ns = 3'600'000'000'000;
  plan.groups = {VerbGroup::kPollCq};
  std::thread user([this] {
    // Both queue pairs of the row live: from then on a sample takes microseconds.
    while (fabric_->live().qps < 2) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    interrupt_.Raise();
  });
  const Record record = RunFake(plan);
  user.join();
  EXPECT_EQ(record.exit_code, 130);
  ASSERT_FALSE(record.results.empty());
  EXPECT_FALSE(record.results.back().complete);
}

TEST_F(RunCostTest, ADeadlineEndsIt) {
  CostPlan plan = SmallPlan();
  plan.deadline_ns = 1;
  const Record record = RunFake(plan);
  EXPECT_EQ(record.exit_code, 6);
  EXPECT_EQ(record.verdict, "error");
}

}  // namespace
}  // namespace verbscope
