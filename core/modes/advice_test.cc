#include "core/modes/advice.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace verbscope {
namespace {

ModeRow Row(double rate, const std::string& mode, int64_t p50_ns, double utilization,
            double achieved_share = 1) {
  ModeRow row;
  row.load = std::to_string(static_cast<int>(rate));
  row.mode = mode;
  row.offered_per_s = rate;
  row.achieved_per_s = rate * achieved_share;
  row.p50_ns = p50_ns;
  row.p99_ns = 2 * p50_ns;
  row.utilization = utilization;
  return row;
}

ModeRow Against(ModeRow row, double more_ns, double saved_percent) {
  row.p50_more_ns = Difference{.value = more_ns};
  row.cpu_saved_percent = Difference{.value = saved_percent};
  return row;
}

std::vector<ModeRow> Rows() {
  return {Row(1'000, "busy", 1'000, 1),   Against(Row(1'000, "event", 7'100, 0.03), 6'100, 97),
          Row(10'000, "busy", 1'000, 1),  Against(Row(10'000, "event", 6'000, 0.2), 5'000, 80),
          Row(640'000, "busy", 1'000, 1), Against(Row(640'000, "event", 41'000, 1), 40'000, 0)};
}

TEST(AdviceTest, TheSentenceNamesTheLastRateThatPaysAndTheFirstThatDoesNot) {
  EXPECT_EQ(CrossoverSentences(Rows()),
            (std::vector<std::string>{
                "up to 10,000/s event costs +6.1 us p50 at 1,000/s and +5.0 us p50 at 10,000/s "
                "and saves 97 to 80 % CPU; at 640,000/s it saves nothing"}));
}

TEST(AdviceTest, AModeThatPaysAtOneRateOnlyHasOneFigure) {
  std::vector<ModeRow> rows = Rows();
  rows.erase(rows.begin() + 2, rows.begin() + 4);
  EXPECT_EQ(CrossoverSentences(rows),
            (std::vector<std::string>{"up to 1,000/s event costs +6.1 us p50 and saves 97 % CPU; "
                                      "at 640,000/s it saves nothing"}));
}

TEST(AdviceTest, AModeThatAlwaysPaysSaysSo) {
  std::vector<ModeRow> rows = Rows();
  rows.resize(2);
  EXPECT_EQ(CrossoverSentences(rows),
            (std::vector<std::string>{"up to 1,000/s event costs +6.1 us p50 and saves 97 % CPU; "
                                      "it still pays at the highest rate measured"}));
}

TEST(AdviceTest, AModeThatNeverPaysSaysSo) {
  std::vector<ModeRow> rows = Rows();
  rows[1] = Against(Row(1'000, "event", 7'100, 0.97), 6'100, 3);
  EXPECT_EQ(
      CrossoverSentences(rows).at(0),
      "at 1,000/s event: it saves nothing and costs +6.1 us p50; yet at 10,000/s it costs +5.0 "
      "us p50 and saves 80 % CPU");
  rows[3] = Against(Row(10'000, "event", 6'000, 0.98), 5'000, 2);
  EXPECT_EQ(CrossoverSentences(rows).at(0),
            "from 1,000/s event: it saves nothing and costs +6.1 us p50; nor does it pay at any "
            "higher rate measured");
}

TEST(AdviceTest, ALowerLatencyIsNoCostAndIsSaid) {
  std::vector<ModeRow> rows = Rows();
  rows.resize(2);
  rows[1].p50_more_ns = Difference{.value = -300, .low = -320, .high = -280};
  EXPECT_EQ(CrossoverSentences(rows).at(0),
            "up to 1,000/s event costs -300 ns p50 and saves 97 % CPU; it still pays at the "
            "highest rate measured");
}

TEST(AdviceTest, WhatDoesNotKeepUpDoesNotPayHoweverIdleItIs) {
  std::vector<ModeRow> rows = Rows();
  rows[3] = Against(Row(10'000, "event", 6'000, 0.2, 0.5), 5'000, 80);
  EXPECT_EQ(CrossoverSentences(rows).at(0),
            "up to 1,000/s event costs +6.1 us p50 and saves 97 % CPU; at 10,000/s it does not "
            "keep up: 5,000 of 10,000/s");
}

TEST(AdviceTest, WhereTheRunsDoNotAgreeNothingIsClaimed) {
  std::vector<ModeRow> rows = Rows();
  rows[1].p50_more_ns = Difference{.value = 6'100, .low = -100, .high = 12'300};
  rows[3].cpu_saved_percent = Difference{.value = 80, .low = -20, .high = 180};
  EXPECT_EQ(CrossoverSentences(rows).at(0),
            "up to 1,000/s event costs no p50 that the runs agree on and saves 97 % CPU; at "
            "10,000/s it may save 80 % CPU, on which the runs do not agree");
}

TEST(AdviceTest, WithoutBusyPollingThereIsNothingToCross) {
  std::vector<ModeRow> rows = {Row(1'000, "event", 7'100, 0.03)};
  EXPECT_TRUE(CrossoverSentences(rows).empty());
}

TEST(AdviceTest, TheCheapestWithinTheLimitIsNamedForEachRate) {
  const std::vector<std::string> advice = Advice(Rows(), 15'000);
  ASSERT_EQ(advice.size(), 4u);
  EXPECT_EQ(advice[0], "least CPU: event (3.0 % of one CPU at 1,000/s)");
  EXPECT_EQ(advice[1], "at 1,000/s within a p99 of 15.0 us: event (p99 14.2 us, 3.0 % of one CPU)");
  EXPECT_EQ(advice[3],
            "at 640,000/s within a p99 of 15.0 us: busy (p99 2.0 us, 100.0 % of one CPU)");
}

TEST(AdviceTest, WithoutALimitItIsTwiceTheBest) {
  EXPECT_EQ(Advice(Rows(), 0).at(1),
            "at 1,000/s within a p99 of 4.0 us: busy (p99 2.0 us, 100.0 % of one CPU)");
}

TEST(AdviceTest, WhereNothingIsWithinTheLimitTheBestIsNamed) {
  EXPECT_EQ(Advice(Rows(), 1'500).at(1),
            "at 1,000/s nothing stays within a p99 of 1.5 us: the best, busy, has 2.0 us");
}

TEST(AdviceTest, TheClosedLoopTellsTheLowestLatency) {
  std::vector<ModeRow> rows = Rows();
  ModeRow closed = Row(0, "event", 3'000, 0.5);
  closed.load = "closed loop";
  closed.offered_per_s.reset();
  rows.push_back(closed);
  closed.mode = "busy";
  closed.p50_ns = 900;
  rows.push_back(closed);
  EXPECT_EQ(Advice(rows, 0).at(0), "lowest latency: busy (p50 900 ns in a closed loop)");
}

}  // namespace
}  // namespace verbscope
