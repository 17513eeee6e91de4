#include "core/session/measured_parts.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/clock/tick_scale.h"

namespace verbscope {
namespace {

constexpr uint64_t kTicksPerSecond = 1'000'000'000;

Operation SendLat() {
  Plan plan;
  plan.command = "send-lat";
  return OperationOf(plan);
}

// One interval of 100 ms with `samples` of so many ns each.
std::unique_ptr<IntervalRecorder> Recorded(uint64_t samples, uint64_t ns) {
  const TickScale scale(kTicksPerSecond, 1);
  auto recorder = std::make_unique<IntervalRecorder>(scale, scale, kTicksPerSecond / 10);
  recorder->Start(0);
  for (uint64_t i = 0; i < samples; ++i) recorder->Record(i, ns);
  recorder->Finish(kTicksPerSecond / 10);
  return recorder;
}

TEST(MeasuredParts, TwoPhasesAreOneResult) {
  const Operation operation = SendLat();
  MeasuredParts parts(operation);
  const uint64_t samples[] = {100, 300};
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<IntervalRecorder> recorder = Recorded(samples[i], i == 0 ? 500 : 900);
    IntervalRow row;
    row.to_s = 0.1;
    row.messages = samples[i];
    CpuMetrics cpu;
    cpu.cpu_s = i == 0 ? 0.05 : 0.15;
    cpu.utilization = i == 0 ? 0.5 : 1.0;  // of 100 ms, and of 150 ms
    cpu.us_per_message = 1;
    cpu.events = i == 0 ? 10 : 30;
    cpu.completions_per_event = i == 0 ? 1.0 : 2.0;
    cpu.lost_wakeups = 1;
    cpu.run_delay_s = 0.25;
    parts.Add({.latency = recorder.get(),
               .intervals = {row},
               .cpu = cpu,
               .samples = samples[i],
               .messages = samples[i],
               .seconds = 0.1,
               .late_sends = 2,
               .counters = {{"sent", 7}, {i == 0 ? "first" : "second", 1}}});
  }
  EXPECT_DOUBLE_EQ(parts.seconds(), 0.2);
  const Metrics metrics = parts.ToMetrics(/*offered_per_s=*/1000);
  ASSERT_TRUE(metrics.latency);
  EXPECT_EQ(metrics.latency->samples, 400u);
  EXPECT_EQ(metrics.latency->min_ns, 500);
  EXPECT_EQ(metrics.latency->max_ns, 900);
  EXPECT_DOUBLE_EQ(*metrics.latency->mean_ns, 800);
  ASSERT_EQ(metrics.latency->blocks.size(), 2u);
  EXPECT_DOUBLE_EQ(metrics.latency->blocks[1].from_s, 0.1);
  EXPECT_DOUBLE_EQ(*metrics.load->achieved_per_s, 2000);
  EXPECT_EQ(metrics.load->late_sends, 4u);
  EXPECT_DOUBLE_EQ(metrics.cpu->cpu_s, 0.2);
  EXPECT_DOUBLE_EQ(*metrics.cpu->utilization, 0.8);
  EXPECT_DOUBLE_EQ(*metrics.cpu->us_per_message, 500);
  EXPECT_EQ(metrics.cpu->events, 40u);
  EXPECT_DOUBLE_EQ(*metrics.cpu->completions_per_event, 1.75);
  EXPECT_EQ(metrics.cpu->lost_wakeups, 2u);
  EXPECT_DOUBLE_EQ(*metrics.cpu->run_delay_s, 0.5);
  const std::map<std::string, int64_t> counters = {{"first", 1}, {"second", 1}, {"sent", 14}};
  EXPECT_EQ(metrics.counters, counters);
  ASSERT_EQ(parts.intervals().size(), 2u);
  EXPECT_DOUBLE_EQ(parts.intervals()[1].from_s, 0.1);
  EXPECT_DOUBLE_EQ(parts.intervals()[1].to_s, 0.2);
}

TEST(MeasuredParts, AStreamsRatesAreOfAllItsTime) {
  const Operation operation = SendLat();
  MeasuredParts parts(operation);
  for (const double seconds : {1.0, 3.0}) {
    BandwidthMetrics bandwidth;
    bandwidth.bytes = 1'000'000'000;
    bandwidth.messages = 1000;
    bandwidth.seconds = seconds;
    bandwidth.gbit_per_s = 8 / seconds;
    bandwidth.msg_per_s = 1000 / seconds;
    parts.Add({.bandwidth = bandwidth, .seconds = seconds});
  }
  const Metrics metrics = parts.ToMetrics(0);
  EXPECT_FALSE(metrics.latency);
  EXPECT_FALSE(metrics.load);
  EXPECT_EQ(metrics.bandwidth->messages, 2000u);
  EXPECT_DOUBLE_EQ(metrics.bandwidth->seconds, 4);
  EXPECT_DOUBLE_EQ(*metrics.bandwidth->gbit_per_s, 4);
  EXPECT_DOUBLE_EQ(*metrics.bandwidth->msg_per_s, 500);
}

TEST(MeasuredParts, OnePhaseStandsAsItIs) {
  const Operation operation = SendLat();
  MeasuredParts parts(operation);
  CpuMetrics cpu;
  cpu.cpu_s = 1;
  cpu.us_per_message = 12.5;
  parts.Add({.cpu = cpu, .seconds = 1});
  const Metrics metrics = parts.ToMetrics(0);
  EXPECT_EQ(metrics.cpu->us_per_message, 12.5);
  EXPECT_EQ(metrics.cpu->utilization, std::nullopt);
}

}  // namespace
}  // namespace verbscope
