// Sessions of cq-scale and cq-overrun on the fake device, whose CQs hold what they were asked for,
// forget what does not fit and raise CQ_ERR once, and whose queue pairs go on: a device for which
// that is not listed, so that a run which lost something is seen not to pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/loops/wr_id.h"
#include "core/plan/cq_plan.h"
#include "core/session/session_test_util.h"

namespace verbscope {
namespace {

// What polls of the requester's CQs go through; the hooks of verbs are plain function pointers.
struct Liar {
  std::function<bool(ibv_wc&)> completion;  // false: keep it
  std::mutex mutex;
};
Liar* liar = nullptr;

class LyingDevice : public FakeDevice {
 public:
  using FakeDevice::FakeDevice;

  Expected<Pd> AllocatePd() override {
    Expected<Pd> pd = FakeDevice::AllocatePd();
    if (pd && (*pd)->context->ops.poll_cq != Poll) {
      true_poll = std::exchange((*pd)->context->ops.poll_cq, Poll);
    }
    return pd;
  }

 private:
  static int Poll(ibv_cq* cq, int wanted, ibv_wc* wcs) {
    const std::lock_guard lock(liar->mutex);
    const int got = true_poll(cq, wanted, wcs);
    int kept = 0;
    for (int i = 0; i < got; ++i) {
      ibv_wc wc = wcs[i];
      if (!liar->completion || liar->completion(wc)) wcs[kept++] = wc;
    }
    return got < 0 ? got : kept;
  }

  static inline int (*true_poll)(ibv_cq*, int, ibv_wc*) = nullptr;
};

using LyingProvider = ProviderOf<LyingDevice>;

class CqSessionTest : public testing::Test {
 protected:
  CqSessionTest() { liar = &liar_; }
  ~CqSessionTest() override { liar = nullptr; }

  static Plan ScalePlan() {
    Plan plan;
    plan.command = kCqScale;
    plan.qps = 4;
    plan.tx_depth = 4;
    plan.duration_ns = 10'000'000;
    plan.quick = true;
    plan.cqs = {1, 2};
    plan.cq_depths = {64};
    return plan;
  }
  static Plan OverrunPlan() {
    Plan plan;
    plan.command = kCqOverrun;
    plan.iterations = 60;
    plan.quick = true;
    return plan;
  }

  SessionOutcome Run(const Plan& plan) {
    Interrupt own;
    Interrupt theirs;
    SessionOutcome outcome = lies_at_requester_
                                 ? RunSession(plan, {.provider = lying_, .interrupt = own},
                                              {.provider = honest_, .interrupt = theirs})
                                 : RunSession(plan, {.provider = honest_, .interrupt = own},
                                              {.provider = lying_, .interrupt = theirs});
    EXPECT_EQ(fabric_->live().total(), 0);
    EXPECT_EQ(outcome.requester.exit_code, outcome.responder.exit_code);
    EXPECT_EQ(outcome.requester.results.size(), outcome.responder.results.size());
    return outcome;
  }

  static const CheckRow& Check(const Record& record, const std::string& name) {
    static const CheckRow none{.name = "none"};
    const auto found = std::ranges::find(record.checks, name, &CheckRow::name);
    EXPECT_NE(found, record.checks.end()) << name;
    return found == record.checks.end() ? none : *found;
  }
  static const OverrunMetrics& Overrun(const Record& record, const std::string& variant) {
    static const OverrunMetrics none;
    for (const Result& result : record.results) {
      if (result.point.variant == variant && result.metrics.overrun) return *result.metrics.overrun;
    }
    ADD_FAILURE() << "no result " << variant;
    return none;
  }

  std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  FakeProvider honest_{fabric_, {DefaultFakeDevice("fake0", 1)}};
  LyingProvider lying_{fabric_, DefaultFakeDevice("fake1", 2)};
  bool lies_at_requester_ = true;
  Liar liar_;
};

TEST_F(CqSessionTest, ScalePassesWithOneResultPerPoint) {
  const SessionOutcome outcome = Run(ScalePlan());
  const Record& record = outcome.requester;
  ASSERT_FALSE(record.error) << record.error->ToText();
  EXPECT_EQ(record.exit_code, 0);
  EXPECT_EQ(Check(record, "cq-threads").status, "pass");
  ASSERT_EQ(record.results.size(), 5U);
  for (const Result& result : record.results) {
    ASSERT_TRUE(result.metrics.scale && result.metrics.bandwidth && result.metrics.cpu);
    EXPECT_GT(result.metrics.bandwidth->messages, 0U);
    EXPECT_TRUE(result.metrics.scale->speedup);
    EXPECT_EQ(result.point.threads, result.metrics.scale->threads);
    EXPECT_GE(result.metrics.scale->cqe, 8U);
    EXPECT_TRUE(result.complete);
  }
  EXPECT_EQ(record.results.front().metrics.scale->speedup, 1.0);
  EXPECT_EQ(record.results[3].point.cq_depth, 64U);
  EXPECT_EQ(record.results[3].metrics.scale->cqe, 64U);
  EXPECT_EQ(record.results.back().point, record.results.front().point);
  EXPECT_EQ(record.results.back().run, 1U);
}

TEST_F(CqSessionTest, AWrongQpNumFailsItsPointAndNamesBoth) {
  liar_.completion = [writes = 0](ibv_wc& wc) mutable {
    if (wc.opcode == IBV_WC_RDMA_WRITE && ++writes == 40) wc.qp_num ^= 1;
    return true;
  };
  const SessionOutcome outcome = Run(ScalePlan());
  EXPECT_EQ(outcome.requester.exit_code, 3);
  const CheckRow& row = Check(outcome.responder, "cqs-1-threads-1");
  EXPECT_EQ(row.status, "fail");
  EXPECT_NE(row.observed.find("whose qp_num is 0x"), std::string::npos) << row.observed;
  EXPECT_NE(row.observed.find("but qp_num is 0x"), std::string::npos) << row.observed;
}

// The threads take each other's completions: one that bears the wr_id of another is both a doubled
// and a lost one.
TEST_F(CqSessionTest, ThreadsAtOneCqFindADoubledAndALostCompletion) {
  lies_at_requester_ = false;
  liar_.completion = [receives = 0](ibv_wc& wc) mutable {
    if (KindOf(wc.wr_id) == WrKind::kRecv && ++receives == 100) {
      wc.wr_id = MakeWrId(WrKind::kRecv, QpIndexOf(wc.wr_id), SequenceOf(wc.wr_id) - 1);
    }
    return true;
  };
  Plan plan = ScalePlan();
  const SessionOutcome outcome = Run(plan);
  EXPECT_EQ(outcome.requester.exit_code, 3);
  const CheckRow& row = Check(outcome.requester, "cq-threads");
  EXPECT_EQ(row.status, "fail");
  EXPECT_NE(row.observed.find("1 lost, 1 came twice"), std::string::npos) << row.observed;
  EXPECT_EQ(Check(outcome.requester, "cqs-1-threads-1").status, "skip");
}

TEST_F(CqSessionTest, AnOverrunThatIsNotListedForTheDeviceFailsWithItsNumbers) {
  const SessionOutcome outcome = Run(OverrunPlan());
  const Record& record = outcome.requester;
  ASSERT_FALSE(record.error) << record.error->ToText();
  EXPECT_EQ(record.exit_code, 3) << "completions were lost";
  const CheckRow& sends = Check(record, "overrun-by-sends");
  EXPECT_EQ(sends.status, "fail");
  EXPECT_NE(sends.observed.find("QP in RTS, the CQ goes on"), std::string::npos) << sends.observed;
  EXPECT_NE(sends.observed.find("16 of 32 delivered, 16 lost"), std::string::npos);
  const OverrunMetrics& lost = Overrun(record, "overrun by sends");
  EXPECT_EQ(lost.cqe, kOverrunCqe);
  EXPECT_EQ(lost.outstanding, lost.delivered + lost.lost);
  EXPECT_EQ(lost.lost, kOverrunExtra);
  EXPECT_TRUE(lost.event.starts_with("CQ_ERR"));
  EXPECT_EQ(lost.cq_usable, true);
  EXPECT_EQ(Overrun(record, "overrun by receives").lost, kOverrunExtra);
}

TEST_F(CqSessionTest, WhatCannotOverrunPassesOnEveryDevice) {
  const SessionOutcome outcome = Run(OverrunPlan());
  for (const char* name : {"recovery", "avoidance", "sizing-requester", "sizing-responder"}) {
    const CheckRow& row = Check(outcome.responder, name);
    EXPECT_EQ(row.status, "pass") << name << ": " << row.observed;
  }
  const OverrunMetrics& paused = Overrun(outcome.requester, "posts that pause");
  EXPECT_EQ(paused.most_unpolled, paused.cqe) << "as many as fit";
  EXPECT_EQ(paused.lost, 0U);
  const OverrunMetrics& brim = Overrun(outcome.requester, "filled to the brim");
  EXPECT_EQ(brim.outstanding, brim.cqe);
}

TEST_F(CqSessionTest, ALossWithoutAnOverrunFails) {
  liar_.completion = [writes = 0](ibv_wc& wc) mutable {
    // After the two overruns, whose completions are 16 and one more each: one of the recovery.
    return wc.opcode != IBV_WC_RDMA_WRITE || ++writes != 40;
  };
  const SessionOutcome outcome = Run(OverrunPlan());
  EXPECT_EQ(outcome.requester.exit_code, 3);
  const CheckRow& row = Check(outcome.requester, "recovery");
  EXPECT_EQ(row.status, "fail");
  EXPECT_NE(row.observed.find("lost"), std::string::npos) << row.observed;
}

}  // namespace
}  // namespace verbscope
