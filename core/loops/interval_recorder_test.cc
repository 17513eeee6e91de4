#include "core/loops/interval_recorder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace verbscope {
namespace {

TEST(IntervalRecorderTest, TotalHoldsEverySampleScaled) {
  IntervalRecorder recorder(TickScale(1e9, 0.5), TickScale(), 1000);
  recorder.Start(0);
  uint64_t now = 0;
  for (uint64_t i = 1; i <= 1000; ++i) {
    now += 2 * i;
    recorder.Record(now, 2 * i);
  }
  recorder.Finish(now);
  EXPECT_EQ(recorder.total().count(), 1000u);
  EXPECT_EQ(recorder.total().min(), 1);
  EXPECT_EQ(recorder.total().max(), 1000);
  EXPECT_DOUBLE_EQ(recorder.total().mean(), 500.5);
}

TEST(IntervalRecorderTest, RowsCoverTheRunWithoutGapsAndCountEveryMessageOnce) {
  IntervalRecorder recorder(TickScale(1e9, 0.5), TickScale(), 10'000);
  recorder.Start(5'000);
  uint64_t now = 5'000;
  for (int i = 0; i < 1000; ++i) {
    now += 100;
    recorder.Record(now, 100);
    recorder.Fold();
  }
  recorder.Finish(now);
  const std::vector<IntervalRow> rows = recorder.TakeRows();
  ASSERT_EQ(rows.size(), 10u);
  uint64_t messages = 0;
  double end = 0;
  for (const IntervalRow& row : rows) {
    EXPECT_DOUBLE_EQ(row.from_s, end);
    EXPECT_GT(row.to_s, row.from_s);
    EXPECT_EQ(row.p50_ns, 50);
    EXPECT_EQ(row.p99_ns, 50);  // 100 samples are just enough to tell p99 from the maximum
    end = row.to_s;
    messages += row.messages;
  }
  EXPECT_EQ(messages, 1000u);
  EXPECT_DOUBLE_EQ(end, 100'000e-9);
}

// The control thread did not come round: the interval is longer, and nothing is lost.
TEST(IntervalRecorderTest, WithoutAFoldIntervalsGrowAndNoSampleIsLost) {
  IntervalRecorder recorder(TickScale(1e9, 0.5), TickScale(), 1'000);
  recorder.Start(0);
  uint64_t now = 0;
  for (int i = 0; i < 100; ++i) recorder.Record(now += 100, 100);
  recorder.Finish(now);
  const std::vector<IntervalRow> rows = recorder.TakeRows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].messages, 10u);
  EXPECT_EQ(rows[1].messages, 90u);
  EXPECT_EQ(recorder.total().count(), 100u);
}

TEST(IntervalRecorderTest, LongRunsDoubleTheIntervalInsteadOfGrowingTheReport) {
  IntervalRecorder recorder(TickScale(1e9, 0.5), TickScale(), 10);
  recorder.Start(0);
  uint64_t now = 0;
  const int kSamples = 10 * static_cast<int>(IntervalRecorder::kRowsPerDoubling);
  for (int i = 0; i < kSamples; ++i) {
    recorder.Record(now += 10, 10);
    recorder.Fold();
  }
  recorder.Finish(now);
  // 1000 rows of one sample, 1000 of two, 1000 of four, and what is left in rows of eight. The row
  // that is open when the interval doubles keeps its old length.
  const size_t rows = recorder.TakeRows().size();
  EXPECT_GE(rows, 3 * IntervalRecorder::kRowsPerDoubling + 375);
  EXPECT_LE(rows, 3 * IntervalRecorder::kRowsPerDoubling + 378);
}

TEST(IntervalRecorderTest, FoldingBesideRecordingLosesNothing) {
  IntervalRecorder recorder(TickScale(1e9, 0.5), TickScale(), 1'000);
  std::atomic<bool> done = false;
  std::thread control([&] {
    while (!done) recorder.Fold();
  });
  recorder.Start(0);
  uint64_t now = 0;
  for (int i = 0; i < 200'000; ++i) recorder.Record(now += 10, 10);
  done = true;
  control.join();
  recorder.Finish(now);
  uint64_t messages = 0;
  for (const IntervalRow& row : recorder.TakeRows()) messages += row.messages;
  EXPECT_EQ(messages, 200'000u);
  EXPECT_EQ(recorder.total().count(), 200'000u);
}

TEST(IntervalRecorderTest, NoSamplesMakeNoRows) {
  IntervalRecorder recorder(TickScale(1e9, 0.5), TickScale(), 1'000);
  recorder.Start(0);
  recorder.Finish(0);
  EXPECT_TRUE(recorder.TakeRows().empty());
}

}  // namespace
}  // namespace verbscope
