#include "reporters/hdr_log.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/histogram/hdr_codec.h"
#include "core/histogram/histogram.h"
#include "core/record/random_record.h"
#include "core/record/record_json.h"

namespace verbscope {
namespace {

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Interval {
  std::string tag;
  double start_s = 0;
  double length_s = 0;
  double max_ms = 0;
  Histogram histogram;
};

// As a reader of the format takes them: comments and the legend skipped, fields cut at commas.
std::vector<Interval> Read(const std::string& text) {
  std::vector<Interval> intervals;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("#") || line.starts_with("\"")) continue;
    Interval interval;
    std::istringstream fields(line);
    std::string tag, start, length, max, encoded;
    std::getline(fields, tag, ',');
    std::getline(fields, start, ',');
    std::getline(fields, length, ',');
    std::getline(fields, max, ',');
    std::getline(fields, encoded);
    EXPECT_TRUE(tag.starts_with("Tag=")) << line;
    interval.tag = tag.substr(4);
    EXPECT_EQ(interval.tag.find(' '), std::string::npos) << line;
    interval.start_s = std::stod(start);
    interval.length_s = std::stod(length);
    interval.max_ms = std::stod(max);
    const Expected<Histogram> histogram = DecodeHdrV2(encoded);
    EXPECT_TRUE(histogram.has_value()) << line;
    if (histogram) interval.histogram = *histogram;
    intervals.push_back(std::move(interval));
  }
  return intervals;
}

LatencyMetrics Latency(const Histogram& histogram) {
  LatencyMetrics latency;
  latency.definition = "half_round_trip";
  latency.samples = histogram.count();
  latency.min_ns = histogram.min();
  latency.max_ns = histogram.max();
  latency.mean_ns = histogram.mean();
  latency.stdev_ns = histogram.stdev();
  latency.hdr_v2 = EncodeHdrV2(histogram);
  histogram.ForEachBucket([&latency](int64_t from_ns, int64_t to_ns, uint64_t count) {
    latency.buckets.push_back({from_ns, to_ns, count});
  });
  return latency;
}

// 1 to 1,000 us, one each.
Histogram Steps() {
  Histogram histogram;
  for (int64_t us = 1; us <= 1000; ++us) histogram.Record(us * 1000);
  return histogram;
}

Record OneResult() {
  Record record;
  record.command = "send-lat";
  record.started_at = "2026-11-29T12:00:00Z";
  record.wall_s = 2.5;
  Result& result = record.results.emplace_back();
  result.point.op = "send";
  result.point.size_bytes = 64;
  result.metrics.latency = Latency(Steps());
  return record;
}

TEST(HdrLogTest, AResultIsALineWithItsTag) {
  const Record record = OneResult();
  const std::string text = RenderHdrLog({&record, 1});
  EXPECT_TRUE(text.starts_with("#[Histogram log format version 1.3]\n")) << text;
  EXPECT_TRUE(Contains(text, "#[StartTime: 1795953600.000 (seconds since epoch)"));
  const auto intervals = Read(text);
  ASSERT_EQ(intervals.size(), 1u);
  EXPECT_EQ(intervals[0].tag, "send-lat_send_64_bytes_1_QP_requester");
  EXPECT_EQ(intervals[0].start_s, 0);
  EXPECT_EQ(intervals[0].length_s, 2.5);
  EXPECT_EQ(intervals[0].max_ms, 1.0);
  EXPECT_EQ(intervals[0].histogram.count(), 1000u);
}

TEST(HdrLogTest, StretchesOfTimeAreALineEachAndABrokenOneIsSkipped) {
  Record record = OneResult();
  Histogram half;
  half.Record(2'000'000);
  auto& blocks = record.results[0].metrics.latency->blocks;
  blocks = {{0, 0.5, EncodeHdrV2(half)}, {0.5, 1, "AAAA"}, {1, 1.25, EncodeHdrV2(half)}};
  const std::string text = RenderHdrLog({&record, 1});
  const auto intervals = Read(text);
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[1].start_s, 1);
  EXPECT_EQ(intervals[1].length_s, 0.25);
  EXPECT_NEAR(intervals[1].max_ms, 2, 0.002);
  EXPECT_TRUE(Contains(text, "could not be read"));
}

TEST(HdrLogTest, RecordsStandAtTheirTimeAndUnderTheirTag) {
  std::vector<Record> records = {OneResult(), OneResult()};
  records[0].started_at = "2026-11-29T12:00:10Z";
  const auto intervals = Read(RenderHdrLog(records));
  ASSERT_EQ(intervals.size(), 2u);
  EXPECT_EQ(intervals[0].start_s, 10);
  EXPECT_EQ(intervals[1].start_s, 0);
  EXPECT_NE(intervals[0].tag, intervals[1].tag);
}

TEST(HdrLogTest, ARecordWithoutTheTextHasItsBuckets) {
  Record record = OneResult();
  record.results[0].metrics.latency->hdr_v2.clear();
  const auto intervals = Read(RenderHdrLog({&record, 1}));
  ASSERT_EQ(intervals.size(), 1u);
  EXPECT_EQ(intervals[0].histogram.count(), 1000u);
  EXPECT_EQ(intervals[0].histogram.ValueAtRank(500).lowest_ns, Steps().ValueAtRank(500).lowest_ns);
}

TEST(HgrmTest, TheDistributionHasTheKnownLevels) {
  const Record record = OneResult();
  const std::string text = RenderHgrm({&record, 1});
  EXPECT_TRUE(text.starts_with("# verbscope: values in us\n# send-lat: send 64 bytes"));
  EXPECT_TRUE(Contains(text,
                       "       Value     Percentile TotalCount 1/(1-Percentile)\n\n"
                       "       1.000 0.000000000000          1           1.00\n"))
      << text;
  // Five steps to each half: 0.1, 0.2 … 0.5, 0.55 …
  EXPECT_TRUE(Contains(text, " 0.100000000000        100           1.11\n")) << text;
  EXPECT_TRUE(Contains(text, " 0.550000000000        550           2.22\n")) << text;
  EXPECT_TRUE(Contains(text, "    1000.000 1.000000000000       1000\n")) << text;
  EXPECT_TRUE(Contains(text,
                       "#[Mean    =      500.500, StdDeviation   =      288.675]\n"
                       "#[Max     =     1000.000, Total count    =         1000]\n"
                       "#[Buckets =           27, SubBuckets     =         2048]\n"))
      << text;
}

TEST(HgrmTest, OneValueAndManyInTheLastBucketEnd) {
  Histogram histogram;
  for (int i = 0; i < 1'000'000; ++i) histogram.Record(1234);
  Record record = OneResult();
  record.results[0].metrics.latency = Latency(histogram);
  const std::string text = RenderHgrm({&record, 1});
  EXPECT_TRUE(Contains(text,
                       "       1.234 0.000000000000    1000000           1.00\n"
                       "       1.234 1.000000000000    1000000\n"))
      << text;
}

TEST(HdrLogTest, RandomRecordsAreReadBack) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 40; ++i) {
    const std::vector<Record> records = {RandomRecord(random, i % 2 == 1),
                                         RandomRecord(random, i % 2 == 1)};
    uint64_t expected = 0;
    for (const Record& record : records) {
      for (const Result& result : record.results) {
        if (result.metrics.latency && result.metrics.latency->blocks.empty()) {
          expected += result.metrics.latency->samples;
        }
      }
    }
    uint64_t found = 0;
    for (const Interval& interval : Read(RenderHdrLog(records)))
      found += interval.histogram.count();
    EXPECT_GE(found, expected);
    const std::string distribution = RenderHgrm(records);
    EXPECT_EQ(ValidUtf8(distribution), distribution);
    std::istringstream stream(distribution);
    for (std::string line; std::getline(stream, line);) {
      const bool known = line.empty() || line.starts_with('#') || line.starts_with(' ') ||
                         (line[0] >= '0' && line[0] <= '9');
      EXPECT_TRUE(known) << line;
    }
  }
}

}  // namespace
}  // namespace verbscope
