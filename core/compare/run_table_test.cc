#include "core/compare/run_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/compare/testing.h"

namespace verbscope {
namespace {

Record Sweep(const std::vector<uint64_t>& sizes, uint32_t runs) {
  Record record = Report("send-lat");
  for (const uint64_t size : sizes) {
    for (uint32_t run = 0; run < runs; ++run) {
      record.results.push_back(LatencyRun(1000 + static_cast<double>(size), run));
      record.results.back().point.size_bytes = size;
    }
  }
  return record;
}

TEST(RunTableTest, RunsOfAllReportsOfAPointAreOneSet) {
  const std::vector<Record> base = {Sweep({64, 128}, 3), Sweep({64}, 2)};
  const std::vector<Record> fresh = {Sweep({128, 64}, 4)};
  const Expected<RunTable> table = JoinRuns(base, fresh, {}, false);
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[0].point.size_bytes, 64u);
  EXPECT_EQ(table->rows[0].base.size(), 5u);
  EXPECT_EQ(table->rows[0].fresh.size(), 4u);
  EXPECT_EQ(table->rows[1].point.size_bytes, 128u);
  EXPECT_EQ(table->rows[1].base.size(), 3u);
  EXPECT_TRUE(table->unmatched.empty());
}

TEST(RunTableTest, SidesAreApart) {
  Record base = Sweep({64}, 1);
  base.results.push_back(LatencyRun(1100, 0, "responder"));
  const Expected<RunTable> table = JoinRuns({&base, 1}, {&base, 1}, {}, false);
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[1].side, "responder");
}

TEST(RunTableTest, WhatOnlyOneSetHasIsSaid) {
  const Record base = Sweep({64, 128}, 1);
  const Record fresh = Sweep({64, 256}, 1);
  const Expected<RunTable> table = JoinRuns({&base, 1}, {&fresh, 1}, {}, false);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows.size(), 1u);
  ASSERT_EQ(table->unmatched.size(), 2u);
  EXPECT_EQ(table->unmatched[0], "only in base: send 128 bytes, 1 QP, wait busy, requester");
  EXPECT_EQ(table->unmatched[1], "only in new: send 256 bytes, 1 QP, wait busy, requester");
}

TEST(RunTableTest, EveryMemberOfAPointKeepsResultsApart) {
  const Record base = Sweep({64}, 1);
  const auto joins = [&base](auto change) {
    Record fresh = base;
    change(fresh.results[0].point);
    return !JoinRuns({&base, 1}, {&fresh, 1}, {}, false)->rows.empty();
  };
  EXPECT_TRUE(joins([](Point&) {}));
  EXPECT_FALSE(joins([](Point& p) { p.op = "write"; }));
  EXPECT_FALSE(joins([](Point& p) { p.size_bytes = 65; }));
  EXPECT_FALSE(joins([](Point& p) { p.qps = 2; }));
  EXPECT_FALSE(joins([](Point& p) { p.cqs = 1; }));
  EXPECT_FALSE(joins([](Point& p) { p.threads = 1; }));
  EXPECT_FALSE(joins([](Point& p) { p.cq_depth = 1; }));
  EXPECT_FALSE(joins([](Point& p) { p.wait = "event"; }));
  EXPECT_FALSE(joins([](Point& p) { p.spin_ns = 1; }));
  EXPECT_FALSE(joins([](Point& p) { p.rate_per_s = 1; }));
  EXPECT_FALSE(joins([](Point& p) { p.busy_share_percent = 1; }));
  EXPECT_FALSE(joins([](Point& p) { p.moderation = "1:1us"; }));
  EXPECT_FALSE(joins([](Point& p) { p.tx_depth = 1; }));
  EXPECT_FALSE(joins([](Point& p) { p.timer_code = 1; }));
  EXPECT_FALSE(joins([](Point& p) { p.imm = true; }));
  EXPECT_FALSE(joins([](Point& p) { p.atomic_op = "fetch-add"; }));
  EXPECT_FALSE(joins([](Point& p) { p.bidirectional = true; }));
  EXPECT_FALSE(joins([](Point& p) { p.post_list = 2; }));
  EXPECT_FALSE(joins([](Point& p) { p.inline_data = false; }));
  EXPECT_FALSE(joins([](Point& p) { p.signal_every = 2; }));
  EXPECT_FALSE(joins([](Point& p) { p.variant = "x"; }));
  EXPECT_TRUE(joins([](Point& p) { p.imm = false; }));  // as absent: not done
  // No text passes for two members.
  EXPECT_FALSE(joins([](Point& p) { p.wait = "busy;0:;0:"; }));
}

TEST(RunTableTest, AShareOfWhatBusyPollingSustainedIdentifiesNotTheRateItCameTo) {
  Record base = Sweep({64}, 1);
  base.results[0].point.busy_share_percent = 80;
  base.results[0].point.rate_per_s = 123'456;
  Record fresh = base;
  fresh.results[0].point.rate_per_s = 125'000;
  EXPECT_EQ(JoinRuns({&base, 1}, {&fresh, 1}, {}, false)->rows.size(), 1u);
}

TEST(RunTableTest, AnIgnoredMemberMayDifferUnlessThatMixesPoints) {
  const Record base = Sweep({64}, 2);
  const Record fresh = Sweep({128}, 2);
  EXPECT_EQ(JoinRuns({&base, 1}, {&fresh, 1}, {"size_bytes"}, false)->rows.size(), 1u);
  const Record both = Sweep({64, 128}, 2);
  const Expected<RunTable> mixed = JoinRuns({&base, 1}, {&both, 1}, {"size_bytes"}, false);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().error_class, ErrorClass::kUsage);
  EXPECT_NE(mixed.error().message.find("128 bytes"), std::string::npos);
}

TEST(RunTableTest, ByOrderTheNthBelongsToTheNth) {
  const Record base = Sweep({64, 128, 256}, 2);
  const Record fresh = Sweep({1024, 2048}, 3);
  const Expected<RunTable> table = JoinRuns({&base, 1}, {&fresh, 1}, {}, true);
  ASSERT_TRUE(table);
  ASSERT_EQ(table->rows.size(), 2u);
  EXPECT_EQ(table->rows[1].point.size_bytes, 128u);
  EXPECT_EQ(table->rows[1].fresh[0]->point.size_bytes, 2048u);
  EXPECT_EQ(table->rows[1].fresh.size(), 3u);
  ASSERT_EQ(table->unmatched.size(), 1u);
  EXPECT_NE(table->unmatched[0].find("only in base: send 256 bytes"), std::string::npos);
}

TEST(RunTableTest, TooManyRunsAreRefused) {
  const Record base = Sweep({64}, kMaxRunsOfASet + 1);
  const Expected<RunTable> table = JoinRuns({&base, 1}, {&base, 1}, {}, false);
  ASSERT_FALSE(table);
  EXPECT_NE(table.error().message.find("more than 2000 runs"), std::string::npos);
}

TEST(RunTableTest, TheCoarsestClockThatMeasuredItCounts) {
  Record base = Sweep({64}, 1);
  base.local.clock.emplace().resolution_ns = 10;
  base.remote->clock.emplace().resolution_ns = 40;
  Record fresh = base;
  fresh.local.clock->resolution_ns = 25;
  EXPECT_EQ(JoinRuns({&base, 1}, {&fresh, 1}, {}, false)->rows[0].clock_step_ns, 25);
  base.results[0].side = fresh.results[0].side = "responder";
  EXPECT_EQ(JoinRuns({&base, 1}, {&fresh, 1}, {}, false)->rows[0].clock_step_ns, 40);
}

}  // namespace
}  // namespace verbscope
