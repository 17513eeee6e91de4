#include "core/histogram/time_blocks.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

Histogram HistogramOf(int64_t ns, uint64_t count) {
  Histogram histogram;
  for (uint64_t i = 0; i < count; ++i) histogram.Record(ns);
  return histogram;
}

TEST(TimeBlocks, KeepsEverySampleHoweverManyIntervals) {
  for (const size_t intervals : {1u, 5u, 63u, 64u, 65u, 130u, 1000u}) {
    TimeBlocks blocks;
    Histogram all;
    for (size_t i = 0; i < intervals; ++i) {
      const Histogram part = HistogramOf(static_cast<int64_t>(100 + i), 1 + i % 3);
      all.Merge(part);
      blocks.Add(static_cast<double>(i), static_cast<double>(i + 1), part);
    }
    EXPECT_LE(blocks.blocks().size(), TimeBlocks::kMost);
    EXPECT_GE(blocks.blocks().size(), std::min<size_t>(intervals, TimeBlocks::kMost / 2));
    Histogram joined;
    double end_s = 0;
    for (const TimeBlock& block : blocks.blocks()) {
      EXPECT_EQ(block.from_s, end_s) << "no gap and no overlap";
      end_s = block.to_s;
      const Histogram part = block.ToHistogram();
      EXPECT_EQ(part.count(), block.samples());
      joined.Merge(part);
    }
    EXPECT_EQ(end_s, static_cast<double>(intervals));
    ASSERT_EQ(joined.count(), all.count());
    for (size_t i = all.FirstIndex(); i <= all.LastIndex(); ++i) {
      ASSERT_EQ(joined.counter(i), all.counter(i)) << i;
    }
  }
}

TEST(TimeBlocks, BlocksStayAboutEquallyLong) {
  TimeBlocks blocks;
  for (int i = 0; i < 200; ++i) blocks.Add(i, i + 1, HistogramOf(50, 1));
  ASSERT_GT(blocks.blocks().size(), 32u);
  for (size_t i = 0; i + 1 < blocks.blocks().size(); ++i) {
    EXPECT_EQ(blocks.blocks()[i].samples(), 4u) << i;
  }
}

TEST(TimeBlocks, LatenciesOfManyValuesTakeNoMoreMemory) {
  TimeBlocks blocks;
  for (int i = 0; i < 300; ++i) {
    Histogram part;
    for (int64_t k = 0; k < 2000; ++k) part.Record(1000 + k);
    blocks.Add(i, i + 1, part);
    size_t counters = 0;
    for (const TimeBlock& block : blocks.blocks()) counters += block.counters.size();
    // Two thousand counters more or less are one block's.
    EXPECT_LE(counters, std::max(TimeBlocks::kMostCounters, 2 * TimeBlocks::kFewest * 2000) + 2000);
  }
  EXPECT_GE(blocks.blocks().size(), TimeBlocks::kFewest);
  uint64_t samples = 0;
  for (const TimeBlock& block : blocks.blocks()) samples += block.samples();
  EXPECT_EQ(samples, 600'000u);
}

TEST(TimeBlocks, CountsWhatIsAboveABucket) {
  Histogram histogram = HistogramOf(100, 3);
  histogram.Merge(HistogramOf(5'000'000, 2));
  TimeBlocks blocks;
  blocks.Add(0, 1, histogram);
  const TimeBlock& block = blocks.blocks().front();
  EXPECT_EQ(block.SamplesAbove(99), 5u);
  EXPECT_EQ(block.SamplesAbove(100), 2u);
  EXPECT_EQ(block.SamplesAbove(5'000'000), 0u);
  EXPECT_EQ(block.SamplesAbove(-1), 5u);
  EXPECT_EQ(block.SamplesAbove(INT64_MAX), 0u);
}

TEST(TimeBlocks, AnEmptyIntervalIsNoBlock) {
  TimeBlocks blocks;
  blocks.Add(0, 1, Histogram());
  EXPECT_TRUE(blocks.blocks().empty());
}

TEST(TimeBlocks, ALongPartBehindAShortOneMakesBlocksOfOneLength) {
  TimeBlocks blocks;
  for (int i = 0; i < 10; ++i) blocks.Add(i, i + 1, HistogramOf(50, 1));
  TimeBlocks later;
  for (int i = 0; i < 250; ++i) later.Add(i, i + 1, HistogramOf(50, 1));  // blocks of 4
  blocks.Append(later, 10);
  uint64_t samples = 0;
  double end_s = 0;
  for (const TimeBlock& block : blocks.blocks()) {
    EXPECT_EQ(block.from_s, end_s);
    end_s = block.to_s;
    EXPECT_LE(block.samples(), 16u) << "from " << block.from_s;
    samples += block.samples();
  }
  EXPECT_EQ(samples, 260u);
  EXPECT_EQ(end_s, 260);
  ASSERT_GT(blocks.blocks().size(), 20u);
  EXPECT_GE(blocks.blocks()[0].samples(), 4u) << "the short ones were joined";
  EXPECT_GE(blocks.blocks()[1].samples(), 4u);
}

TEST(TimeBlocks, ALaterPartFollowsInTime) {
  TimeBlocks first;
  first.Add(0, 1, HistogramOf(10, 1));
  TimeBlocks later;
  later.Add(0, 2, HistogramOf(20, 4));
  first.Append(later, 1.5);
  ASSERT_EQ(first.blocks().size(), 2u);
  EXPECT_EQ(first.blocks()[1].from_s, 1.5);
  EXPECT_EQ(first.blocks()[1].to_s, 3.5);
  EXPECT_EQ(first.blocks()[1].samples(), 4u);
}

}  // namespace
}  // namespace verbscope
