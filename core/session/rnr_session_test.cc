// Sessions of rnr-test on the fake device, which knows no time: it gives up at once, whatever the
// receiver's timer says, and so must be found out. What passes is seen on the soft device
// (tests/soft) and on rxe (tests/lab).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "core/session/session_test_util.h"

namespace verbscope {
namespace {

class RnrSessionTest : public testing::Test {
 protected:
  using Outcome = SessionOutcome;

  RnrSessionTest() {
    fabric_->set_rnr_exhausts(true);
    plan_.command = "rnr-test";
    plan_.iterations = 3;
    plan_.quick = true;
    plan_.timer_codes = {1, 12};
  }

  Outcome Run() {
    Interrupt own;
    Interrupt theirs;
    Outcome outcome = RunSession(plan_, {.provider = requester_, .interrupt = own},
                                 {.provider = responder_, .interrupt = theirs});
    EXPECT_EQ(fabric_->live().total(), 0);
    return outcome;
  }

  static const CheckRow* Find(const Record& record, const std::string& name) {
    const auto found = std::ranges::find(record.checks, name, &CheckRow::name);
    return found == record.checks.end() ? nullptr : &*found;
  }

  Plan plan_;
  std::shared_ptr<FakeFabric> fabric_ = std::make_shared<FakeFabric>();
  FakeProvider requester_{fabric_, {DefaultFakeDevice("fake0", 1)}};
  FakeProvider responder_{fabric_, {DefaultFakeDevice("fake1", 2)}};
};

TEST_F(RnrSessionTest, ASenderThatDoesNotWaitIsFoundByBothSides) {
  plan_.rnr_timer_code = 20;  // 10.24 ms: no host is that slow by chance in every attempt
  plan_.timer_codes = {20};
  const Outcome outcome = Run();
  for (const Record* record : {&outcome.requester, &outcome.responder}) {
    ASSERT_FALSE(record->error) << record->error->ToText();
    EXPECT_EQ(record->exit_code, 3);
    const CheckRow* timer = Find(*record, "timer-code-20");
    ASSERT_NE(timer, nullptr);
    EXPECT_EQ(timer->status, "fail");
    EXPECT_NE(timer->observed.find("of waits can have been over"), std::string::npos)
        << timer->observed;
    const CheckRow* retry = Find(*record, "exhaustion-retry-6");
    ASSERT_NE(retry, nullptr);
    EXPECT_EQ(retry->status, "fail");
  }
}

// What needs no time is right: statuses, order, flushes, recovery.
TEST_F(RnrSessionTest, StatusesAndOrderPassWhereNoWaitIsDue) {
  const Outcome outcome = Run();
  for (const char* name : {"exhaustion-retry-0", "recovery", "starved-code-1", "starved-code-12"}) {
    const CheckRow* row = Find(outcome.requester, name);
    ASSERT_NE(row, nullptr) << name;
    EXPECT_EQ(row->status, "pass") << name << ": " << row->observed;
  }
}

TEST_F(RnrSessionTest, BothSidesHaveTheSameResultsWithTheirTimers) {
  const Outcome outcome = Run();
  ASSERT_EQ(outcome.requester.results.size(), outcome.responder.results.size());
  size_t sweeps = 0;
  for (const Result& result : outcome.responder.results) {
    ASSERT_TRUE(result.point.timer_code);
    if (!result.metrics.rnr || result.metrics.rnr->attempts.empty()) continue;
    ++sweeps;
    EXPECT_TRUE(result.metrics.rnr->measured_ns);
    EXPECT_FALSE(result.metrics.rnr->attempts.front().naks) << "the fake device counts nothing";
  }
  EXPECT_EQ(sweeps, 3U);  // two codes, and the exhaustion
}

// A device that never gives up: each attempt's error is missing, and that is said.
TEST_F(RnrSessionTest, AnErrorThatNeverComesIsAFailedCheck) {
  fabric_->set_rnr_exhausts(false);
  plan_.timer_codes = {1};
  const Outcome outcome = Run();
  EXPECT_EQ(outcome.requester.exit_code, 3);
  const CheckRow* row = Find(outcome.requester, "timer-code-1");
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->status, "fail");
  const CheckRow* later = Find(outcome.requester, "exhaustion");
  ASSERT_NE(later, nullptr) << "each would wait in vain";
  EXPECT_EQ(later->status, "skip");
}

}  // namespace
}  // namespace verbscope
