#include "core/modes/mode_summary.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace verbscope {
namespace {

Plan PlanOf(std::vector<double> rates, uint32_t runs) {
  Plan plan;
  plan.command = kEventVsPoll;
  plan.repeat = runs;
  SetDefaultModes(plan);
  plan.rates_per_s = std::move(rates);
  return plan;
}

// What a run under an open load leaves behind: `p50_ns` 200 times, CPU as told.
void AddRun(std::vector<Result>& results, double rate, const std::string& wait, uint32_t run,
            int64_t p50_ns, double responder_share, double achieved_share = 1) {
  for (const char* side : {"requester", "responder"}) {
    const bool requester = std::string(side) == "requester";
    Result result;
    result.side = side;
    result.run = run;
    result.point.op = "send";
    result.point.wait = wait;
    if (wait == "hybrid") result.point.spin_ns = 20'000;
    result.point.rate_per_s = rate;
    result.point.tx_depth = 2048;
    CpuMetrics cpu;
    cpu.utilization = requester ? 1.0 : responder_share;
    cpu.us_per_message = responder_share * 1e6 / rate;
    result.metrics.cpu = cpu;
    if (requester) {
      result.metrics.load = LoadMetrics{
          .offered_per_s = rate, .achieved_per_s = rate * achieved_share, .late_sends = 0};
      LatencyMetrics latency;
      latency.samples = 200;
      latency.max_ns = p50_ns;
      latency.percentiles = {{.percent = "50", .value_ns = p50_ns, .interval = {}}};
      latency.buckets = {{.from_ns = p50_ns, .to_ns = p50_ns, .count = 200}};
      result.metrics.latency = latency;
    }
    results.push_back(result);
  }
}

TEST(ModeSummaryTest, ARowJoinsItsRunsAndItsDifferencesAreTakenRunByRun) {
  std::vector<Result> results;
  for (uint32_t run = 0; run < 3; ++run) {
    AddRun(results, 1'000, "busy", run, 1'000 + run * 100, 1.0);
    AddRun(results, 1'000, "event", run, 5'000 + run * 110, 0.1);
  }
  const ModeSummary summary = SummarizeModes(PlanOf({1'000}, 3), results);
  ASSERT_EQ(summary.rows.size(), 2u);
  const ModeRow& busy = summary.rows[0];
  const ModeRow& event = summary.rows[1];
  EXPECT_EQ(busy.load, "1,000/s");
  EXPECT_EQ(busy.mode, "busy");
  EXPECT_EQ(busy.samples, 600u);
  EXPECT_EQ(busy.p50_ns, 1'100);
  EXPECT_EQ(busy.max_ns, 1'200);
  EXPECT_FALSE(busy.p50_more_ns);
  EXPECT_FALSE(busy.p99_9_ns) << "600 samples cannot tell it from the maximum";
  EXPECT_EQ(event.mode, "event");
  ASSERT_TRUE(event.p50_more_ns);
  EXPECT_DOUBLE_EQ(event.p50_more_ns->value, 4'010);
  // Differences 4000, 4010, 4020: 4010 +- 4.303 * 10 / sqrt(3).
  ASSERT_TRUE(event.p50_more_ns->low);
  EXPECT_NEAR(*event.p50_more_ns->low, 4'010 - 24.84, 0.01);
  EXPECT_NEAR(*event.p50_more_ns->high, 4'010 + 24.84, 0.01);
  ASSERT_TRUE(event.cpu_saved_percent);
  EXPECT_NEAR(event.cpu_saved_percent->value, 90, 1e-9);
  EXPECT_DOUBLE_EQ(*event.utilization, 0.1);
}

TEST(ModeSummaryTest, AnIncompleteRunDoesNotCountAndOneRunHasNoInterval) {
  std::vector<Result> results;
  AddRun(results, 1'000, "busy", 0, 1'000, 1.0);
  AddRun(results, 1'000, "event", 0, 5'000, 0.1);
  AddRun(results, 1'000, "event", 1, 9'000, 0.9);
  results[results.size() - 1].complete = false;
  results[results.size() - 2].complete = false;
  const ModeSummary summary = SummarizeModes(PlanOf({1'000}, 2), results);
  ASSERT_EQ(summary.rows.size(), 2u);
  EXPECT_EQ(summary.rows[1].samples, 200u);
  EXPECT_DOUBLE_EQ(summary.rows[1].p50_more_ns->value, 4'000);
  EXPECT_FALSE(summary.rows[1].p50_more_ns->low);
}

TEST(ModeSummaryTest, LoadsAndModesAreToldApart) {
  std::vector<Result> results;
  AddRun(results, 1'000, "busy", 0, 1'000, 1.0);
  AddRun(results, 1'000, "hybrid", 0, 2'000, 0.3);
  AddRun(results, 640'000, "busy", 0, 3'000, 1.0);
  for (size_t i = results.size() - 2; i < results.size(); ++i) {
    results[i].point.busy_share_percent = 80;
  }
  Result closed = results[0];
  closed.point.rate_per_s.reset();
  closed.point.tx_depth = 1;
  closed.metrics.load = LoadMetrics{.offered_per_s = {}, .achieved_per_s = 5e5, .late_sends = {}};
  results.push_back(closed);
  Result stream = closed;
  stream.point.tx_depth = 128;
  stream.metrics.latency.reset();
  stream.metrics.bandwidth = BandwidthMetrics{
      .bytes = 64, .messages = 1, .seconds = 1, .gbit_per_s = {}, .msg_per_s = 3e6};
  results.push_back(stream);
  Plan plan = PlanOf({1'000}, 1);
  plan.busy_shares_percent = {80};
  const ModeSummary summary = SummarizeModes(plan, results);
  ASSERT_EQ(summary.rows.size(), 5u);
  EXPECT_EQ(summary.rows[0].load, "closed loop");
  EXPECT_FALSE(summary.rows[0].offered_per_s);
  EXPECT_EQ(summary.rows[1].load, "1,000/s");
  EXPECT_EQ(summary.rows[2].mode, "hybrid:20us");
  EXPECT_EQ(summary.rows[3].load, "80 % of busy: 640,000/s");
  EXPECT_EQ(summary.rows[4].load, "streaming");
  EXPECT_EQ(summary.rows[4].samples, 0u);
  EXPECT_FALSE(summary.rows[4].p50_ns);
  EXPECT_DOUBLE_EQ(*summary.rows[4].achieved_per_s, 3e6);
}

TEST(ModeSummaryTest, WhereNoRateIsOfferedCpuIsComparedPerMessage) {
  std::vector<Result> results;
  AddRun(results, 1'000, "busy", 0, 1'000, 1.0);
  AddRun(results, 1'000, "event", 0, 3'000, 0.5);
  for (Result& result : results) {
    result.point.rate_per_s.reset();
    result.point.tx_depth = 1;
    // A third of the messages at half of the time: each costs half as much again.
    result.metrics.cpu->us_per_message = result.point.wait == "busy" ? 1.0 : 1.5;
  }
  const ModeSummary summary = SummarizeModes(PlanOf({}, 1), results);
  ASSERT_EQ(summary.rows.size(), 2u);
  EXPECT_DOUBLE_EQ(summary.rows[1].cpu_saved_percent->value, -50);
}

TEST(ModeSummaryTest, AnIntervalIsNeverTooNarrow) {
  // Mean 0 and standard deviation about 1 of 32 values: t of 31 degrees of freedom is 2.040.
  std::vector<double> values;
  for (int i = 0; i < 16; ++i) values.insert(values.end(), {-1.0, 1.0});
  const Difference difference = MeanOf(values);
  EXPECT_GE(*difference.high, 2.040 * std::sqrt(32.0 / 31) / std::sqrt(32.0));
}

TEST(ModeSummaryTest, ALostWakeUpFailsAndIsNamed) {
  std::vector<Result> results;
  AddRun(results, 1'000, "event", 0, 1'000, 1.0);
  results[0].metrics.cpu->events = 7;
  EXPECT_EQ(LostWakeUpsRow(results).status, "pass");
  EXPECT_EQ(LostWakeUpsRow(results).observed, "0 lost of 7 events");
  results[1].metrics.cpu->lost_wakeups = 2;
  results[1].run = 4;
  const CheckRow row = LostWakeUpsRow(results);
  EXPECT_EQ(row.status, "fail");
  EXPECT_EQ(row.observed, "2 lost of 7 events, first by the responder in event mode, run 4");
}

TEST(ModeSummaryTest, RatesReadInThousands) {
  EXPECT_EQ(RateText(0.5), "0.5");
  EXPECT_EQ(RateText(999), "999");
  EXPECT_EQ(RateText(1'000), "1,000");
  EXPECT_EQ(RateText(12'345'678), "12,345,678");
}

}  // namespace
}  // namespace verbscope
