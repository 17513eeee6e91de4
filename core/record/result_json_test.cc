#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "core/record/random_record.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using testing::HasSubstr;

json Parsed(const ordered_json& document) {
  return json::parse(document.dump(), nullptr, /*allow_exceptions=*/false);
}

Result WithLatency(uint64_t samples) {
  std::mt19937_64 random(7);
  Result result;
  result.point.op = "send";
  result.point.size_bytes = 64;
  result.point.wait = "busy";
  result.metrics.latency = RandomLatency(random, samples, 1'500);
  return result;
}

TEST(ResultJsonTest, WireFormLeavesTheBucketsOutAndTheyComeBack) {
  for (const uint64_t samples : {0u, 1u, 2u, 10'000u}) {
    Result result = WithLatency(samples);
    const ordered_json wire = ToJson(result, ResultForm::kWire);
    EXPECT_FALSE(wire["metrics"]["latency"]["histogram"].contains("buckets"));
    EXPECT_FALSE(wire["metrics"]["latency"]["histogram"].contains("blocks"));
    result.metrics.latency->blocks.clear();  // they stay with the side that has them
    const auto back = ResultFromJson(Parsed(wire));
    ASSERT_TRUE(back.has_value()) << back.error().message;
    EXPECT_EQ(back->metrics.latency->buckets, result.metrics.latency->buckets);
    EXPECT_EQ(ToJson(*back).dump(), ToJson(result).dump());
  }
}

// One result is one frame of the control channel, which holds 1 MiB.
TEST(ResultJsonTest, WireFormOfALongRunStaysBelowAFrame) {
  std::mt19937_64 random(8);
  Result result = WithLatency(0);
  result.metrics.latency = RandomLatency(random, 2'000'000, 100'000);
  for (int i = 0; i < kMaxIntervals; ++i) {
    result.intervals.push_back(
        {i * 0.1, (i + 1) * 0.1, 123'456, 101'234, 134'567, 9'876'543, 12.345678901234567});
  }
  EXPECT_LT(ToJson(result, ResultForm::kWire).dump().size(), size_t{1} << 20);
}

TEST(ResultJsonTest, SamplesBeyondTheHistogramsRangeKeepTheirMaximumOnTheWire) {
  Result result = WithLatency(0);
  LatencyMetrics& latency = *result.metrics.latency;
  std::mt19937_64 random(9);
  latency = RandomLatency(random, 1, 136'000'000'000);
  const auto reach_ns = latency.buckets.back().to_ns;
  latency.max_ns = reach_ns + 5'000'000'000;
  latency.buckets.back().to_ns = *latency.max_ns;
  const auto back = ResultFromJson(Parsed(ToJson(result, ResultForm::kWire)));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->metrics.latency->buckets, latency.buckets);
}

TEST(ResultJsonTest, PercentilesComeBackInAscendingOrder) {
  Result result = WithLatency(100);
  result.metrics.latency->percentiles = {{"5", 1, std::nullopt},
                                         {"50", 2, Interval95{1, 3}},
                                         {"99.9", std::nullopt, std::nullopt},
                                         {"100", 9, std::nullopt}};
  const auto back = ResultFromJson(Parsed(ToJson(result)));
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->metrics.latency->percentiles, result.metrics.latency->percentiles);
}

TEST(ResultJsonTest, LatencyThatContradictsItselfIsRefused) {
  struct Row {
    const char* pointer;
    json value;
    const char* named;
  };
  const Row rows[] = {
      {"/samples", 101, "samples"},
      {"/samples", -1, "samples"},
      {"/histogram", nullptr, "histogram"},
      {"/histogram/buckets", {{1, 2, 100.5}}, "buckets"},
      {"/histogram/buckets", {{5, 4, 100}}, "buckets"},
      {"/histogram/buckets", {{1, 2, 50}, {2, 3, 50}}, "buckets"},
      {"/histogram/buckets", {{1, 2, 100}, {3, 4, 0}}, "buckets"},
      {"/histogram/buckets", {{1, 2, 18446744073709551615u}, {3, 4, 101}}, "sum"},
      {"/histogram/buckets", {{1, 18446744073709551615u, 100}}, "buckets"},
      {"/histogram/buckets", {{1, 2}}, "buckets"},
      {"/histogram/buckets", 7, "buckets"},
      {"/histogram/hdr_v2", "\x1b[2J", "hdr_v2"},
      {"/percentiles_ns", nullptr, "percentiles_ns"},
      {"/percentiles_ns", {{"p99", 1}}, "percentiles_ns"},
      {"/percentiles_ns", {{"101", 1}}, "percentiles_ns"},
      {"/percentiles_ns", {{"0", 1}}, "percentiles_ns"},
      {"/percentiles_ns", {{"9.9.9", 1}}, "percentiles_ns"},
      {"/percentiles_ns", {{"50", "1"}}, "percentiles_ns"},
      {"/interval95_ns/50", {1}, "interval95_ns"},
      {"/interval95_ns/50", {1, 2.5}, "interval95_ns"},
      {"/definition", 1, "definition"},
  };
  const json good = Parsed(ToJson(WithLatency(100)));
  ASSERT_TRUE(ResultFromJson(good).has_value());
  for (const Row& row : rows) {
    json document = good;
    document["metrics"]["latency"][json::json_pointer(row.pointer)] = row.value;
    const auto result = ResultFromJson(document);
    ASSERT_FALSE(result.has_value()) << row.pointer << row.value;
    EXPECT_THAT(result.error().message, HasSubstr(row.named)) << row.pointer << row.value;
    EXPECT_EQ(result.error().error_class, ErrorClass::kRun);
  }
}

TEST(ResultJsonTest, WireHistogramThatDoesNotDecodeIsRefused) {
  const json good = Parsed(ToJson(WithLatency(100), ResultForm::kWire));
  for (const char* text : {"", "AAAA", "not base64!", "HISTFAAAAAB4nA=="}) {
    json document = good;
    document["metrics"]["latency"]["histogram"]["hdr_v2"] = text;
    EXPECT_FALSE(ResultFromJson(document).has_value()) << text;
  }
}

TEST(ResultJsonTest, CountersKeepNegativeChangesAndRefuseFractions) {
  Result result = WithLatency(0);
  result.metrics.counters = {{"out_of_sequence", 5}, {"odd", -3}};
  json document = Parsed(ToJson(result));
  const auto back = ResultFromJson(document);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->metrics.counters, result.metrics.counters);
  document["metrics"]["counters"]["odd"] = 0.5;
  EXPECT_THAT(ResultFromJson(document).error().message, HasSubstr("counters.odd"));
}

}  // namespace
}  // namespace verbscope
