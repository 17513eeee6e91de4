#include "core/loops/rate_recorder.h"

#include <gtest/gtest.h>

namespace verbscope {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;  // of ticks

RateRecorder Make(uint64_t interval_ticks, uint64_t bytes) {
  return {TickScale(1e9, 1), interval_ticks, bytes};
}

// Known bytes over a known time: the exact rate in every unit.
TEST(RateRecorder, RatesAreExact) {
  RateRecorder recorder = Make(kSecond, 65536);
  recorder.Start(5);
  recorder.Count(5 + kSecond, 1000);
  recorder.Count(5 + 2 * kSecond, 1000);
  const BandwidthMetrics total = recorder.Total();
  EXPECT_EQ(total.messages, 2000u);
  EXPECT_EQ(total.bytes, 131'072'000u);
  EXPECT_DOUBLE_EQ(total.seconds, 2.0);
  EXPECT_DOUBLE_EQ(*total.gbit_per_s, 0.524288);  // decimal: 10^9 bits
  EXPECT_DOUBLE_EQ(*total.msg_per_s, 1000.0);
}

TEST(RateRecorder, NoTimeOrNoBytesGiveNoRateAndNoZero) {
  RateRecorder idle = Make(kSecond, 64);
  idle.Start(7);
  EXPECT_FALSE(idle.Total().gbit_per_s);
  EXPECT_FALSE(idle.Total().msg_per_s);
  EXPECT_TRUE(idle.Rows().empty());
  RateRecorder empty = Make(kSecond, 0);
  empty.Start(0);
  empty.Count(kSecond, 10);
  EXPECT_FALSE(empty.Total().gbit_per_s);
  EXPECT_DOUBLE_EQ(*empty.Total().msg_per_s, 10.0);
}

TEST(RateRecorder, RowsCoverTheWholeTimeAndAllMessages) {
  RateRecorder recorder = Make(100, 1);
  recorder.Start(0);
  for (uint64_t now = 10; now <= 1'050; now += 10) recorder.Count(now, 1);
  const std::vector<IntervalRow> rows = recorder.Rows();
  ASSERT_EQ(rows.size(), 11u);
  uint64_t messages = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_DOUBLE_EQ(rows[i].from_s, i == 0 ? 0 : rows[i - 1].to_s);
    EXPECT_FALSE(rows[i].p50_ns);
    messages += rows[i].messages;
  }
  EXPECT_EQ(messages, recorder.messages());
  EXPECT_DOUBLE_EQ(rows.back().to_s, 1.05e-6);
}

// What was in flight at the end completes within a moment, which is no interval.
TEST(RateRecorder, AShortTailIsPartOfTheLastRow) {
  RateRecorder recorder = Make(100, 1);
  recorder.Start(0);
  recorder.Count(100, 10);
  recorder.Count(200, 10);
  recorder.Count(201, 50);
  const std::vector<IntervalRow> rows = recorder.Rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1].messages, 60u);
  EXPECT_DOUBLE_EQ(rows[1].to_s, 201e-9);
}

TEST(RateRecorder, ALongRunJoinsRowsAndLosesNone) {
  RateRecorder recorder = Make(10, 1);
  recorder.Start(0);
  const uint64_t end = 10 * RateRecorder::kRows * 5;
  for (uint64_t now = 1; now <= end; ++now) recorder.Count(now, 3);
  const std::vector<IntervalRow> rows = recorder.Rows();
  EXPECT_LE(rows.size(), RateRecorder::kRows + 1);
  EXPECT_GE(rows.size(), RateRecorder::kRows / 2);
  uint64_t messages = 0;
  for (const IntervalRow& row : rows) messages += row.messages;
  EXPECT_EQ(messages, 3 * end);
}

}  // namespace
}  // namespace verbscope
