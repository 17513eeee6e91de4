#include "reporters/text_histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/record/random_record.h"

namespace verbscope {
namespace {

LatencyMetrics Of(std::vector<HistogramBucket> buckets) {
  LatencyMetrics latency;
  for (const HistogramBucket& bucket : buckets) latency.samples += bucket.count;
  if (!buckets.empty()) {
    latency.min_ns = buckets.front().from_ns;
    latency.max_ns = buckets.back().to_ns;
  }
  latency.buckets = std::move(buckets);
  return latency;
}

void CheckRows(const LatencyMetrics& latency) {
  const std::vector<HistogramRow> rows = HistogramRows(latency);
  ASSERT_FALSE(rows.empty());
  EXPECT_LE(rows.size(), kMaxHistogramRows);
  uint64_t total = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    total += rows[i].count;
    if (i == 0) continue;
    EXPECT_GT(rows[i].from_ns, rows[i - 1].from_ns);
  }
  EXPECT_EQ(total, latency.samples);
  EXPECT_LE(rows.front().from_ns, *latency.min_ns);
  EXPECT_GT(rows.front().count, 0u);
  EXPECT_LE(rows.back().from_ns, *latency.max_ns);
  EXPECT_GT(rows.back().count, 0u);
}

TEST(HistogramRowsTest, HoldEverySampleWhateverTheDistribution) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 500; ++i) {
    const auto typical =
        static_cast<int64_t>(std::exp(std::uniform_real_distribution<>(0, 24)(random)));
    CheckRows(RandomLatency(random, 1 + random() % 2'000, typical));
  }
}

TEST(HistogramRowsTest, ExtremesHaveRowsOfTheirOwn) {
  CheckRows(Of({{0, 0, 1}}));
  CheckRows(Of({{5, 5, 1'000'000}}));
  CheckRows(Of({{0, 0, 1}, {137'000'000'000, 137'438'953'471, 1}}));
  CheckRows(Of({{0, 0, 1'000}, {140'000'000'000'000, 140'737'488'355'327, 1}}));
  CheckRows(Of({{1'000, 1'000, 10'000}, {1'001, 1'001, 1}}));
}

TEST(HistogramRowsTest, OneSlowSampleInAMillionIsTheLastRow) {
  const auto rows = HistogramRows(
      Of({{1'000, 1'000, 999'000}, {1'100, 1'100, 999}, {500'000'000, 500'000'100, 1}}));
  EXPECT_EQ(rows.back().count, 1u);
  EXPECT_TRUE(rows.back().tail);
  EXPECT_FALSE(rows.front().tail);
}

TEST(HistogramRowsTest, BodyIsSpreadOverSeveralRows) {
  std::vector<HistogramBucket> buckets;
  for (int64_t ns = 1'000; ns < 1'100; ++ns) buckets.push_back({ns, ns, 100});
  buckets.push_back({90'000, 90'000, 3});
  int body = 0;
  for (const HistogramRow& row : HistogramRows(Of(buckets))) body += row.tail ? 0 : 1;
  EXPECT_GE(body, 5);
}

TEST(HistogramRowsTest, NoSamplesNoRows) { EXPECT_TRUE(HistogramRows(LatencyMetrics{}).empty()); }

TEST(BarTest, IsProportionalAndNeverInvisible) {
  EXPECT_EQ(Bar(0, 100, 10, true), "");
  EXPECT_EQ(Bar(0, 0, 10, true), "");
  EXPECT_EQ(Columns(Bar(100, 100, 10, true)), 10u);
  EXPECT_EQ(Bar(50, 100, 2, true), "█");
  EXPECT_EQ(Bar(1, 16, 2, true), "▏");
  EXPECT_EQ(Bar(15, 16, 2, true), "█▉");
  EXPECT_EQ(Bar(1, 1'000'000'000, 10, true), "▏");
  EXPECT_EQ(Bar(100, 100, 10, false), "##########");
  EXPECT_EQ(Bar(50, 100, 10, false), "#####");
  EXPECT_EQ(Bar(1, 1'000'000'000, 10, false), ".");
}

TEST(DrawHistogramTest, OnlyTheLastRowReachesAHundredPercent) {
  Canvas canvas(TextOptions{});
  DrawHistogram(Of({{1'000, 1'000, 99'999'999}, {9'000'000, 9'000'100, 1}}), canvas);
  const std::string text = canvas.Take();
  const size_t first = text.find("100 %");
  EXPECT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("100 %", first + 1), std::string::npos) << text;
  EXPECT_NE(text.find("99.999 %"), std::string::npos) << text;
}

}  // namespace
}  // namespace verbscope
