// The tables of rnr-test.
#include <gtest/gtest.h>

#include <string>

#include "core/record/record.h"
#include "reporters/text.h"

namespace verbscope {
namespace {

Record RnrRecord() {
  Record record;
  record.command = "rnr-test";
  record.verdict = "pass";
  record.exit_code = 0;
  Result waits;
  waits.point.op = "send";
  waits.point.size_bytes = 64;
  waits.point.tx_depth = 1;
  waits.point.timer_code = 12;
  waits.point.variant = "retries used up";
  waits.metrics.rnr = RnrMetrics{.nominal_ns = 640'000, .measured_ns = 651'100, .ratio = 1.0173};
  waits.metrics.rnr->attempts = {{.rnr_retry = 1, .predicted_ns = 640'000, .naks = 2},
                                 {.rnr_retry = 2, .predicted_ns = 1'280'000, .naks = 3}};
  record.results.push_back(waits);
  Result exhausted = waits;
  exhausted.point.tx_depth = 4;
  exhausted.metrics.rnr->attempts = {
      {.rnr_retry = 3, .predicted_ns = 1'920'000, .time_to_error_ns = 2'582'000}, {.rnr_retry = 4}};
  record.results.push_back(exhausted);
  Result starved = waits;
  starved.point.tx_depth = 32;
  starved.point.variant = "8 receives at a time";
  starved.complete = false;
  starved.metrics.rnr = RnrMetrics{.nominal_ns = 640'000};
  LatencyMetrics latency;
  latency.definition = "round_trip";
  latency.ended_by = "send_completion";
  latency.max_ns = 6'893'000;
  starved.metrics.latency = latency;
  BandwidthMetrics bandwidth;
  bandwidth.msg_per_s = 6314.7;
  starved.metrics.bandwidth = bandwidth;
  record.results.push_back(starved);
  return record;
}

std::string Rendered(const Record& record, bool verbose = false) {
  return RenderText(record, {.verbose = verbose});
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(TextRnrTest, WaitsAreOneRowPerCodeWithTheirNaks) {
  const std::string text = Rendered(RnrRecord());
  EXPECT_TRUE(Contains(text, " timer code      nominal     measured        ratio         NAKs\n"));
  EXPECT_TRUE(Contains(text, "        12      640.0 us     651.1 us        1.017            5\n"))
      << text;
}

TEST(TextRnrTest, WhatIsNotKnownIsNoNumber) {
  const std::string text = Rendered(RnrRecord());
  EXPECT_TRUE(Contains(text, "         3      1.920 ms     2.582 ms  not counted\n")) << text;
  EXPECT_TRUE(Contains(text, "         4          0 ns         -     not counted\n")) << text;
}

TEST(TextRnrTest, AStarvedRunThatBrokeIsMarked) {
  const std::string text = Rendered(RnrRecord());
  EXPECT_TRUE(Contains(text, "starved: 32 in flight, 8 receives at a time, rnr_retry 7"));
  EXPECT_TRUE(Contains(text, "        12*")) << text;
  EXPECT_TRUE(Contains(text, "       6314.7\n")) << text;
}

TEST(TextRnrTest, TablesReplaceBlocksUnlessAllIsAskedFor) {
  EXPECT_FALSE(Contains(Rendered(RnrRecord()), "bytes        min"));
  EXPECT_FALSE(Contains(Rendered(RnrRecord()), "send 64 bytes"));
  EXPECT_TRUE(Contains(Rendered(RnrRecord(), /*verbose=*/true), "send 64 bytes"));
}

}  // namespace
}  // namespace verbscope
