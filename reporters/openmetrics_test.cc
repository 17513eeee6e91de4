#include "reporters/openmetrics.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/record/random_record.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Record OneResult() {
  Record record;
  record.command = "send-lat";
  record.started_at = "2026-11-29T12:00:00Z";
  record.verdict = "pass";
  record.exit_code = 0;
  record.local.host = "node \"a\"\\b";
  Result& result = record.results.emplace_back();
  result.point.op = "send";
  LatencyMetrics& latency = result.metrics.latency.emplace();
  latency.definition = "half_round_trip";
  latency.samples = 6;
  latency.mean_ns = 2000;
  latency.max_ns = 5003;
  // 5,000 to 5,003 ns is one bucket, which the edge of 5 us cuts.
  latency.buckets = {{10, 10, 1}, {11, 11, 1}, {2000, 2000, 2}, {5000, 5003, 2}};
  latency.percentiles = {{.percent = "99.9", .value_ns = 5003, .interval = {}},
                         {.percent = "99.99", .value_ns = {}, .interval = {}}};
  return record;
}

TEST(OpenMetricsTest, CountsAreThoseOfSamplesCertainlyNotAboveTheEdge) {
  const Record record = OneResult();
  const std::string text = RenderOpenMetrics({&record, 1});
  std::map<std::string, std::string> counts;
  for (const std::string& line : Lines(text)) {
    if (!line.starts_with("verbscope_latency_seconds_bucket{")) continue;
    const size_t from = line.find(",le=\"") + 5;
    counts[line.substr(from, line.find('"', from) - from)] = line.substr(line.rfind(' ') + 1);
  }
  EXPECT_EQ(counts["1e-08"], "1");
  EXPECT_EQ(counts["2e-08"], "2");
  EXPECT_EQ(counts["1e-06"], "2");
  EXPECT_EQ(counts["2e-06"], "4");
  EXPECT_EQ(counts["5e-06"], "4") << "the bucket that is cut counts above";
  EXPECT_EQ(counts["1e-05"], "6");
  EXPECT_EQ(counts["100.0"], "6");
  EXPECT_EQ(counts["+Inf"], "6");
  EXPECT_EQ(counts.size(), 32u);
  EXPECT_TRUE(Contains(text, "verbscope_latency_seconds_sum{")) << text;
  EXPECT_TRUE(Contains(text, "} 1.2e-05\n"));
}

TEST(OpenMetricsTest, QuantilesAreGaugesAndWhatIsUnknownIsNotThere) {
  const Record record = OneResult();
  const std::string text = RenderOpenMetrics({&record, 1});
  EXPECT_TRUE(Contains(text, "# TYPE verbscope_latency_quantile_seconds gauge\n"));
  EXPECT_TRUE(Contains(text, "quantile=\"0.999\"} 5.003e-06\n")) << text;
  EXPECT_FALSE(Contains(text, "0.9999"));
  EXPECT_FALSE(Contains(text, "bandwidth"));
}

TEST(OpenMetricsTest, LabelValuesAreEscaped) {
  const Record record = OneResult();
  const std::string text = RenderOpenMetrics({&record, 1});
  EXPECT_TRUE(Contains(text, R"(host="node \"a\"\\b")")) << text;
}

TEST(OpenMetricsTest, SeveralRecordsAreToldApart) {
  const std::vector<Record> records = {OneResult(), OneResult()};
  const std::string text = RenderOpenMetrics(records);
  EXPECT_TRUE(Contains(text, "verbscope_exit_code{report=\"1\","));
  EXPECT_TRUE(Contains(text, "verbscope_exit_code{report=\"2\","));
  EXPECT_FALSE(Contains(RenderOpenMetrics({records.data(), 1}), "report="));
}

TEST(OpenMetricsTest, AnAssertionHasOneOfItsStatuses) {
  Record record = OneResult();
  record.gates.push_back({.expression = "p99<5us", .outcome = {.status = "fail"}});
  const std::string text = RenderOpenMetrics({&record, 1});
  EXPECT_TRUE(Contains(text, "expression=\"p99<5us\",status=\"fail\"} 1.0\n")) << text;
  EXPECT_TRUE(Contains(text, "expression=\"p99<5us\",status=\"pass\"} 0.0\n"));
}

TEST(OpenMetricsTest, NoRecordIsAnEmptyExposition) { EXPECT_EQ(RenderOpenMetrics({}), "# EOF\n"); }

// What both formats ask for: a family stands together under its TYPE, and no series twice.
TEST(OpenMetricsTest, RandomRecordsKeepTheFormat) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 100; ++i) {
    std::vector<Record> records;
    for (int k = 0; k < 1 + i % 3; ++k) records.push_back(RandomRecord(random, i % 2 == 1));
    records.push_back(records.front());
    if (!records[0].results.empty()) records[0].results.push_back(records[0].results[0]);
    const std::string text = RenderOpenMetrics(records);
    EXPECT_EQ(ValidUtf8(text), text);
    ASSERT_TRUE(text.ends_with("\n# EOF\n"));
    std::set<std::string> families;
    std::set<std::string> series;
    std::string family;
    for (const std::string& line : Lines(text)) {
      if (line.starts_with("# TYPE ")) {
        family = line.substr(7, line.rfind(' ') - 7);
        ASSERT_TRUE(families.insert(family).second) << line;
      }
      if (line.starts_with("#")) continue;
      ASSERT_TRUE(line.starts_with(family)) << line;
      ASSERT_TRUE(series.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
  }
}

}  // namespace
}  // namespace verbscope
