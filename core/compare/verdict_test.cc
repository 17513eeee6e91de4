#include "core/compare/verdict.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/compare/testing.h"

namespace verbscope {
namespace {

ComparisonRow Judged(const std::vector<double>& base, const std::vector<double>& fresh,
                     double margin, bool less_is_better = true) {
  Judge judge;
  ComparisonRow row;
  row.gated = true;
  const Evidence evidence = judge.Weigh(base, fresh, margin, less_is_better, row);
  std::vector<ComparisonRow> rows = {row};
  Decide({evidence}, rows);
  return rows.front();
}

TEST(VerdictTest, TruthTable) {
  struct Case {
    double change;
    double margin;
    size_t runs;
    double spread;
    std::string latency;    // where less is better
    std::string bandwidth;  // where more is
  };
  const Case kCases[] = {
      {1.00, 0.03, 10, 0.004, "same", "same"},
      {1.10, 0.03, 10, 0.004, "worse", "better"},
      {0.90, 0.03, 10, 0.004, "better", "worse"},
      {1.02, 0.03, 10, 0.004, "same", "same"},
      {1.02, 0.00, 10, 0.004, "worse", "better"},
      {0.98, 0.00, 10, 0.004, "better", "worse"},
      {1.00, 0.00, 10, 0.004, "undecided", "undecided"},
      {1.03, 0.03, 10, 0.004, "undecided", "undecided"},
      {1.10, 0.10, 10, 0.004, "undecided", "undecided"},
      {1.10, 0.50, 10, 0.004, "same", "same"},
      {1.04, 0.03, 10, 0.050, "undecided", "undecided"},
      {1.00, 0.03, 10, 0.100, "undecided", "undecided"},
      {1.10, 0.03, 5, 0.004, "worse", "better"},
      {1.00, 0.03, 5, 0.004, "same", "same"},
      {2.00, 0.03, 4, 0.004, "undecided", "undecided"},
      {2.00, 0.03, 1, 0.004, "undecided", "undecided"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.change << " margin " << c.margin << " runs " << c.runs
                                    << " spread " << c.spread);
    const std::vector<double> base = Around(2000, c.runs, c.spread);
    const std::vector<double> fresh = Around(2000 * c.change, c.runs, c.spread);
    EXPECT_EQ(Judged(base, fresh, c.margin).verdict, c.latency);
    EXPECT_EQ(Judged(base, fresh, c.margin, /*less_is_better=*/false).verdict, c.bandwidth);
  }
}

TEST(VerdictTest, TheRatioAndItsIntervalAreThoseOfTheRuns) {
  const ComparisonRow row = Judged(Around(2000, 10), Around(2100, 10), 0.03);
  EXPECT_NEAR(*row.ratio, 1.05, 0.001);
  EXPECT_LT(*row.ratio_low, *row.ratio);
  EXPECT_GT(*row.ratio_high, *row.ratio);
  EXPECT_NEAR(*row.base, 2000, 5);
  EXPECT_NEAR(*row.fresh, 2100, 5);
  EXPECT_EQ(row.base_runs, 10u);
  EXPECT_NEAR(*row.p_worse, 1.0 / 184'756, 1e-9);
  EXPECT_EQ(row.runs_needed, std::nullopt);
}

TEST(VerdictTest, SameMeansThatThePrintedIntervalLiesWithinTheMargin) {
  int same = 0;
  for (int i = 0; i < 200; ++i) {
    const double spread = 0.0005 * i;
    const ComparisonRow row = Judged(Around(2000, 10, spread), Around(2010, 10, spread), 0.03);
    const bool within = *row.ratio_low > 1 / 1.03 && *row.ratio_high < 1.03;
    EXPECT_EQ(row.verdict == "same", within) << spread;
    same += within ? 1 : 0;
  }
  EXPECT_GT(same, 20);
  EXPECT_LT(same, 180);
}

TEST(VerdictTest, ThreeRunsCannotTellAndSayHowManyCan) {
  const ComparisonRow row = Judged(Around(2000, 3), Around(4000, 3), 0.03);
  EXPECT_EQ(row.verdict, "undecided");
  EXPECT_EQ(row.runs_needed, 5u);
  EXPECT_NE(row.why.find("below 4"), std::string::npos) << row.why;
  EXPECT_NEAR(*row.ratio, 2, 0.02);  // an estimate, and no more
  EXPECT_EQ(row.p_worse, std::nullopt);
}

TEST(VerdictTest, TheNearerToTheMarginTheMoreRunsItTakes) {
  uint64_t before = 0;
  for (const double change : {1.10, 1.08, 1.06, 1.05}) {
    const ComparisonRow row = Judged(Around(2000, 6, 0.12), Around(2000 * change, 6, 0.12), 0.03);
    ASSERT_EQ(row.verdict, "undecided") << change;
    ASSERT_TRUE(row.runs_needed) << change;
    EXPECT_GT(*row.runs_needed, 6u);
    EXPECT_GE(*row.runs_needed, before);
    before = *row.runs_needed;
  }
  EXPECT_GT(before, 20u);
}

TEST(VerdictTest, AtTheEdgeOfTheMarginThereIsNoNumber) {
  const ComparisonRow row =
      Judged(Around(2000, 10, 0.05), Around(2000 * 1.0300001, 10, 0.05), 0.03);
  EXPECT_EQ(row.verdict, "undecided");
  EXPECT_EQ(row.runs_needed, std::nullopt);
  EXPECT_FALSE(row.why.empty());
  // Nothing can be the same within no margin.
  EXPECT_EQ(Judged(Around(2000, 10), Around(2000, 10), 0).runs_needed, std::nullopt);
}

TEST(VerdictTest, ZeroHasNoRatio) {
  std::vector<double> base = Around(10, 10);
  base[2] = 0;
  const ComparisonRow row = Judged(base, Around(20, 10), 0.03);
  EXPECT_EQ(row.verdict, "undecided");
  EXPECT_EQ(row.ratio, std::nullopt);
  EXPECT_EQ(row.runs_needed, std::nullopt);
  EXPECT_NE(row.why.find("0"), std::string::npos);
}

TEST(VerdictTest, EqualRunsAreNoDifference) {
  const std::vector<double> base(10, 244);
  EXPECT_EQ(Judged(base, base, 0.03).verdict, "same");
  EXPECT_EQ(Judged(base, base, 0).verdict, "undecided");
}

TEST(VerdictTest, ManyMetricsNeedMoreThanOne) {
  // Five runs of each set reach 1/252, which is enough alone and for twelve, not for thirteen.
  for (const size_t number : {1u, 12u, 13u}) {
    Judge judge;
    std::vector<Evidence> evidence;
    std::vector<ComparisonRow> rows(number);
    for (size_t i = 0; i < number; ++i) {
      rows[i].gated = true;
      const double change = i == 0 ? 1.5 : 1.0;
      evidence.push_back(
          judge.Weigh(Around(2000, 5, 0.01), Around(2000 * change, 5, 0.01), 0.03, true, rows[i]));
    }
    Decide(evidence, rows);
    EXPECT_EQ(rows[0].verdict, number <= 12 ? "worse" : "undecided") << number;
    if (number == 13) {
      EXPECT_EQ(rows[0].runs_needed, 6u);
      EXPECT_NEAR(*rows[0].p_worse, 13.0 / 252, 1e-9);
    }
  }
}

TEST(VerdictTest, WhatIsNotGatedStandsForItselfAndCostsTheOthersNothing) {
  Judge judge;
  std::vector<Evidence> evidence;
  std::vector<ComparisonRow> rows(30);
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].gated = i == 0;
    evidence.push_back(judge.Weigh(Around(2000, 5), Around(3000, 5), 0.03, true, rows[i]));
  }
  Decide(evidence, rows);
  for (const ComparisonRow& row : rows) EXPECT_NEAR(*row.p_worse, 1.0 / 252, 1e-9);
}

TEST(VerdictTest, SetsOfDifferentSizesAreJudgedTogether) {
  EXPECT_EQ(Judged(Around(2000, 5), Around(2200, 12), 0.03).verdict, "worse");
  EXPECT_EQ(Judged(Around(2000, 80), Around(2200, 60), 0.03).verdict, "worse");
  EXPECT_EQ(Judged(Around(2000, 80), Around(2000, 60), 0.03).verdict, "same");
}

}  // namespace
}  // namespace verbscope
