#include "reporters/bmf.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "core/record/random_record.h"

namespace verbscope {
namespace {

using nlohmann::json;

json Parsed(const std::string& text) {
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(value.is_discarded()) << text;
  return value;
}

Record OneResult() {
  Record record;
  record.command = "send-lat";
  record.verdict = "pass";
  record.exit_code = 0;
  Result& result = record.results.emplace_back();
  result.point.op = "send";
  result.point.size_bytes = 64;
  LatencyMetrics& latency = result.metrics.latency.emplace();
  latency.definition = "half_round_trip";
  latency.samples = 1000;
  latency.mean_ns = 250.5;
  latency.percentiles = {{.percent = "50", .value_ns = 240, .interval = Interval95{239, 242}},
                         {.percent = "99.9", .value_ns = 900, .interval = {}},
                         {.percent = "99.99", .value_ns = {}, .interval = {}}};
  result.metrics.bandwidth.emplace().gbit_per_s = 12.5;
  return record;
}

constexpr char kName[] = "send-lat: send 64 bytes, 1 QP, requester";

TEST(BmfTest, AMeasureForEachFigureWithItsBounds) {
  const Record record = OneResult();
  const json document = Parsed(RenderBmf({&record, 1}));
  EXPECT_EQ(document, json({{kName,
                             {{"latency-p50-ns",
                               {{"value", 240.0}, {"lower_value", 239.0}, {"upper_value", 242.0}}},
                              {"latency-p99.9-ns", {{"value", 900.0}}},
                              {"latency-mean-ns", {{"value", 250.5}}},
                              {"bandwidth-gbit-per-s", {{"value", 12.5}}}}}}))
      << document.dump(1);
}

TEST(BmfTest, SmallerAndBiggerAreBetterInFilesOfTheirOwn) {
  const Record record = OneResult();
  const json smaller = Parsed(RenderGhaSmaller({&record, 1}));
  ASSERT_EQ(smaller.size(), 3u);
  EXPECT_EQ(smaller[0], json({{"name", std::string(kName) + ": p50"},
                              {"unit", "ns"},
                              {"value", 240.0},
                              {"range", "239 to 242"},
                              {"extra", "1000 samples, half_round_trip"}}));
  EXPECT_FALSE(smaller[1].contains("range"));
  const json bigger = Parsed(RenderGhaBigger({&record, 1}));
  ASSERT_EQ(bigger.size(), 1u);
  EXPECT_EQ(bigger[0]["unit"], "Gb/s");
}

TEST(BmfTest, NumbersOfABrokenRunDoNotEnterAHistory) {
  Record record = OneResult();
  record.results[0].complete = false;
  EXPECT_EQ(Parsed(RenderBmf({&record, 1})), json::object());
  record = OneResult();
  record.error.emplace();
  EXPECT_EQ(Parsed(RenderBmf({&record, 1})), json::object());
  EXPECT_EQ(Parsed(RenderGhaSmaller({&record, 1})), json::array());
  EXPECT_EQ(Parsed(RenderGhaBigger({&record, 1})), json::array());
}

TEST(BmfTest, RandomRecordsAreJsonAndNoResultHidesAnother) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 100; ++i) {
    Record record = RandomRecord(random, i % 2 == 1);
    record.error.reset();
    record.verdict = "pass";
    if (!record.results.empty()) record.results.push_back(record.results[0]);
    size_t expected = 0;
    for (const Result& result : record.results) {
      const Metrics& metrics = result.metrics;
      const bool any =
          (metrics.latency && metrics.latency->samples > 0) ||
          (metrics.bandwidth && (metrics.bandwidth->gbit_per_s || metrics.bandwidth->msg_per_s)) ||
          (metrics.cpu && metrics.cpu->us_per_message);
      expected += result.complete && any ? 1 : 0;
    }
    EXPECT_EQ(Parsed(RenderBmf({&record, 1})).size(), expected);
    for (const json& entry : Parsed(RenderGhaSmaller({&record, 1}))) {
      EXPECT_TRUE(entry["value"].is_number());
      EXPECT_TRUE(entry["name"].is_string() && entry["unit"].is_string());
    }
  }
}

}  // namespace
}  // namespace verbscope
