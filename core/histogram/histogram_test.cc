#include "core/histogram/histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>
#include <vector>

namespace verbscope {
namespace {

using Buckets = std::vector<std::pair<BucketRange, uint64_t>>;

Buckets BucketsOf(const Histogram& histogram) {
  Buckets buckets;
  histogram.ForEachBucket([&](int64_t from, int64_t to, uint64_t count) {
    buckets.push_back({{from, to}, count});
  });
  return buckets;
}

// Everything a reader can see must agree.
void ExpectSame(const Histogram& a, const Histogram& b) {
  EXPECT_EQ(a.count(), b.count());
  EXPECT_EQ(a.overflow(), b.overflow());
  EXPECT_EQ(a.negative(), b.negative());
  EXPECT_EQ(a.min(), b.min());
  EXPECT_EQ(a.max(), b.max());
  EXPECT_EQ(a.mean(), b.mean());
  EXPECT_EQ(a.stdev(), b.stdev());
  EXPECT_EQ(BucketsOf(a), BucketsOf(b));
}

TEST(HistogramLayout, ValuesBelow2048HaveACounterEach) {
  for (int64_t ns = 0; ns < 2048; ++ns) {
    EXPECT_EQ(Histogram::IndexOf(ns), static_cast<size_t>(ns));
    EXPECT_EQ(Histogram::RangeOf(static_cast<size_t>(ns)), (BucketRange{ns, ns}));
  }
  EXPECT_EQ(Histogram::RangeOf(Histogram::IndexOf(2048)), (BucketRange{2048, 2049}));
}

TEST(HistogramLayout, BucketsCoverTheRangeWithoutGapOrOverlapAtATenthOfAPercent) {
  int64_t next = 0;
  for (size_t i = 0; i < Histogram::kCounters; ++i) {
    const BucketRange range = Histogram::RangeOf(i);
    ASSERT_EQ(range.lowest_ns, next);
    ASSERT_EQ(Histogram::IndexOf(range.lowest_ns), i);
    ASSERT_EQ(Histogram::IndexOf(range.highest_ns), i);
    ASSERT_LE((range.highest_ns - range.lowest_ns) * 1000, range.lowest_ns);
    next = range.highest_ns + 1;
  }
  EXPECT_EQ(next, Histogram::kRangeNs + 1);
}

TEST(Histogram, EmptyHasNoValues) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 0);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.stdev(), 0);
  EXPECT_EQ(histogram.ValueAtRank(1), (BucketRange{0, 0}));
  EXPECT_TRUE(BucketsOf(histogram).empty());
}

TEST(Histogram, OneToThousandMicrosecondsGivesExactMoments) {
  Histogram histogram;
  for (int64_t us = 1; us <= 1000; ++us) histogram.Record(us * 1000);
  EXPECT_EQ(histogram.count(), 1000u);
  EXPECT_EQ(histogram.min(), 1000);
  EXPECT_EQ(histogram.max(), 1'000'000);
  EXPECT_EQ(histogram.mean(), 500'500);
  // Population deviation of 1..n is sqrt((n² − 1) / 12).
  EXPECT_DOUBLE_EQ(histogram.stdev(), 1000 * std::sqrt((1e6 - 1) / 12));
}

TEST(Histogram, AlternatingSamplesHaveADeviation) {
  Histogram histogram;
  for (int i = 0; i < 1000; ++i) histogram.Record(i % 2 == 0 ? 1600 : 2400);
  EXPECT_EQ(histogram.mean(), 2000);
  EXPECT_EQ(histogram.stdev(), 400);
}

TEST(Histogram, DeviationSurvivesALargeMean) {
  // In doubles, E[x²] − mean² of these is lost entirely.
  Histogram histogram;
  for (int i = 0; i < 1'000'000; ++i) histogram.Record(99'999'999'999 + i % 3);
  EXPECT_EQ(histogram.mean(), 100'000'000'000 - 1e-6);
  EXPECT_NEAR(histogram.stdev(), std::sqrt(2.0 / 3), 1e-6);
}

TEST(Histogram, ConstantSamplesHaveNoDeviation) {
  Histogram histogram;
  for (int i = 0; i < 777; ++i) histogram.Record(Histogram::kHighestNs);
  EXPECT_EQ(histogram.mean(), 1e11);
  EXPECT_EQ(histogram.stdev(), 0);
}

TEST(Histogram, SumsHoldTenBillionSamplesOfTheHighestValue) {
  // 2^34 samples by repeated doubling; merging adds the same sums as recording.
  Histogram histogram;
  histogram.Record(Histogram::kHighestNs);
  histogram.Record(Histogram::kHighestNs - 10);
  for (int i = 0; i < 33; ++i) {
    const Histogram copy = histogram;
    histogram.Merge(copy);
  }
  EXPECT_EQ(histogram.count(), uint64_t{1} << 34);
  EXPECT_EQ(histogram.mean(), 1e11 - 5);
  EXPECT_EQ(histogram.stdev(), 5);
}

TEST(Histogram, ValueAboveTheRangeCountsInTheLastBucketAndKeepsTheExactMaximum) {
  Histogram histogram;
  histogram.Record(Histogram::kRangeNs);
  EXPECT_EQ(histogram.overflow(), 0u);
  histogram.Record(200'000'000'001);
  EXPECT_EQ(histogram.overflow(), 1u);
  EXPECT_EQ(histogram.count(), 2u);
  EXPECT_EQ(histogram.max(), 200'000'000'001);
  EXPECT_EQ(histogram.counter(Histogram::kCounters - 1), 2u);
  EXPECT_EQ(histogram.ValueAtRank(2).highest_ns, 200'000'000'001);
  EXPECT_EQ(BucketsOf(histogram).back().first.highest_ns, 200'000'000'001);
}

TEST(Histogram, OnlyOverflowedSamplesStayConsistent) {
  Histogram histogram;
  for (int i = 0; i < 10; ++i) histogram.Record(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(histogram.overflow(), 10u);
  EXPECT_EQ(histogram.min(), Histogram::kLargestNs);
  EXPECT_EQ(histogram.ValueAtRank(1), (BucketRange{Histogram::kLargestNs, Histogram::kLargestNs}));
  EXPECT_EQ(histogram.mean(), static_cast<double>(Histogram::kLargestNs));
  EXPECT_EQ(histogram.stdev(), 0);
}

TEST(Histogram, NegativeValueIsCountedAsZeroAndTold) {
  Histogram histogram;
  histogram.Record(-1);
  histogram.Record(std::numeric_limits<int64_t>::min());
  histogram.Record(0);
  EXPECT_EQ(histogram.negative(), 2u);
  EXPECT_EQ(histogram.counter(0), 3u);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 0);
}

TEST(Histogram, ValueAtRankIsClampedToMinimumAndMaximum) {
  Histogram histogram;
  histogram.Record(1'000'001);  // bucket 999,936..1,000,447
  EXPECT_EQ(histogram.ValueAtRank(1), (BucketRange{1'000'001, 1'000'001}));
  histogram.Record(1'000'003);
  EXPECT_EQ(histogram.ValueAtRank(1), (BucketRange{1'000'001, 1'000'003}));
  EXPECT_EQ(histogram.ValueAtRank(0), histogram.ValueAtRank(1));
  EXPECT_EQ(histogram.ValueAtRank(99), histogram.ValueAtRank(2));
}

TEST(Histogram, MergeEqualsTheUnion) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(std::log(2000), 1.5);
  Histogram parts[3];
  Histogram all;
  for (int i = 0; i < 30'000; ++i) {
    const auto ns = static_cast<int64_t>(latency(random));
    parts[i % 2].Record(ns);  // parts[2] stays empty
    all.Record(ns);
  }
  parts[0].Record(-5);
  all.Record(-5);
  parts[1].Record(300'000'000'000);
  all.Record(300'000'000'000);
  Histogram merged;
  for (const Histogram& part : parts) merged.Merge(part);
  ExpectSame(merged, all);
}

TEST(Histogram, ResetEqualsANewOne) {
  Histogram histogram;
  for (const int64_t ns : {-1, 5, 100'000}) histogram.Record(ns);
  histogram.Record(500'000'000'000);
  histogram.Reset();
  ExpectSame(histogram, Histogram());
  for (size_t i = 0; i < Histogram::kCounters; ++i) ASSERT_EQ(histogram.counter(i), 0u);
  histogram.Record(7);
  EXPECT_EQ(histogram.min(), 7);
  EXPECT_EQ(histogram.max(), 7);
}

TEST(Histogram, BucketSumsEqualTheCount) {
  std::mt19937_64 random(2);
  Histogram histogram;
  for (int i = 0; i < 10'000; ++i) {
    histogram.Record(static_cast<int64_t>(random() % Histogram::kHighestNs));
  }
  uint64_t total = 0;
  int64_t previous = -1;
  histogram.ForEachBucket([&](int64_t from, int64_t to, uint64_t count) {
    EXPECT_GT(from, previous);
    EXPECT_GE(to, from);
    EXPECT_GT(count, 0u);
    previous = to;
    total += count;
  });
  EXPECT_EQ(total, histogram.count());
}

TEST(Histogram, AddToBucketKnowsValuesToOneBucket) {
  Histogram histogram;
  histogram.AddToBucket(5, 0);
  EXPECT_EQ(histogram.count(), 0u);
  const size_t index = Histogram::IndexOf(1'000'000);
  histogram.AddToBucket(index, 10);
  EXPECT_EQ(histogram.count(), 10u);
  EXPECT_EQ(histogram.min(), Histogram::RangeOf(index).lowest_ns);
  EXPECT_EQ(histogram.max(), Histogram::RangeOf(index).highest_ns);
  EXPECT_NEAR(histogram.mean(), 1e6, 512);
  EXPECT_EQ(histogram.stdev(), 0);
}

}  // namespace
}  // namespace verbscope
