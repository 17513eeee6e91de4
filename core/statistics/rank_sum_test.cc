#include "core/statistics/rank_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace verbscope {
namespace {

// An independent oracle: all ways to choose which of n + m ranks are of the second set.
std::vector<uint64_t> CountsByU(size_t n, size_t m) {
  std::vector<uint64_t> counts(n * m + 1);
  for (uint32_t chosen = 0; chosen < (1u << (n + m)); ++chosen) {
    if (static_cast<size_t>(__builtin_popcount(chosen)) != m) continue;
    uint64_t u = 0;
    uint64_t first_below = 0;
    for (size_t rank = 0; rank < n + m; ++rank) {
      if ((chosen >> rank & 1) != 0) {
        u += first_below;
      } else {
        ++first_below;
      }
    }
    ++counts[u];
  }
  return counts;
}

TEST(RankSumNullTest, EqualsAllOrdersCountedOneByOne) {
  for (size_t n = 1; n <= 6; ++n) {
    for (size_t m = 1; m <= 6; ++m) {
      const std::vector<uint64_t> counts = CountsByU(n, m);
      double all = 0;
      for (const uint64_t count : counts) all += static_cast<double>(count);
      const RankSumNull null(n, m);
      double above = 0;
      for (size_t u = counts.size(); u-- > 0;) {
        above += static_cast<double>(counts[u]);
        EXPECT_NEAR(null.AtLeast(u), above / all, 1e-12) << n << " " << m << " " << u;
      }
      EXPECT_EQ(null.AtLeast(n * m + 1), 0);
    }
  }
}

TEST(RankSumNullTest, ThreeRunsOfEachSetReachOneInTwentyAndNoLess) {
  EXPECT_NEAR(RankSumNull(3, 3).AtLeast(9), 0.05, 1e-12);
  EXPECT_NEAR(RankSumNull(4, 4).AtLeast(16), 1.0 / 70, 1e-12);
  EXPECT_NEAR(RankSumNull(5, 5).AtLeast(25), 1.0 / 252, 1e-12);
  EXPECT_NEAR(RankSumNull(10, 10).AtLeast(100), 1.0 / 184'756, 1e-15);
}

// Two-sided 5 %: the largest U of the smaller tail, from the usual tables; -1: none.
TEST(RankSumNullTest, CriticalValuesAreThoseOfTheTables) {
  const struct {
    size_t n, m;
    int critical;
  } kTable[] = {{3, 3, -1},  {4, 4, 0},    {3, 5, 0},    {5, 5, 2},    {6, 6, 5},
                {5, 8, 6},   {7, 7, 8},    {8, 8, 13},   {9, 9, 17},   {10, 10, 23},
                {7, 12, 18}, {15, 15, 64}, {12, 12, 37}, {20, 20, 127}};
  for (const auto& row : kTable) {
    EXPECT_EQ(static_cast<int>(RankSumNull(row.n, row.m).OutsideCount(0.025)) - 1, row.critical)
        << row.n << " " << row.m;
  }
}

TEST(RankSumNullTest, ItIsSymmetricAndFalls) {
  for (const auto& [n, m] : {std::pair<size_t, size_t>{50, 50}, {1, 2500}, {51, 50}, {300, 7}}) {
    const RankSumNull null(n, m);
    const uint64_t pairs = n * m;
    double before = 1;
    for (uint64_t u = 0; u <= pairs; ++u) {
      const double p = null.AtLeast(u);
      ASSERT_LE(p, before);
      ASSERT_NEAR(p, 1 - null.AtLeast(pairs - u + 1), 1e-9) << u;
      before = p;
    }
  }
}

TEST(RankSumNullTest, TheApproximationContinuesTheExactOne) {
  const RankSumNull exact(50, 50);
  const RankSumNull near(50, 51);
  for (const double level : {0.05, 0.025, 0.001}) {
    const double from = static_cast<double>(exact.OutsideCount(level)) / 2500;
    const double to = static_cast<double>(near.OutsideCount(level)) / 2550;
    EXPECT_NEAR(from, to, 0.002) << level;
  }
  EXPECT_GT(RankSumNull(10'000, 10'000).OutsideCount(0.025), 49'000'000u);
}

TEST(PairsAboveTest, TiesNeverCount) {
  const std::vector<double> base = {1, 2, 3};
  EXPECT_EQ(PairsAbove(base, base, 0), 3u);  // of nine: three are equal, three are below
  EXPECT_EQ(PairsAbove(std::vector<double>{2, 2}, std::vector<double>{2, 2}, 0), 0u);
  EXPECT_EQ(PairsAbove(base, std::vector<double>{4, 5, 6}, 0), 9u);
  EXPECT_EQ(PairsAbove(base, std::vector<double>{4, 5, 6}, 3), 3u);
  // 0.1 + 0.2 is not 0.3 in doubles, and yet no difference.
  EXPECT_EQ(PairsAbove(std::vector<double>{0.1}, std::vector<double>{0.1 + 0.2}, 0.2), 0u);
}

TEST(PairsAboveTest, EqualsCountingEachPair) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<double> base(1 + random() % 12);
    std::vector<double> fresh(1 + random() % 12);
    for (double& value : base) value = static_cast<double>(random() % 20);
    for (double& value : fresh) value = static_cast<double>(random() % 20);
    const double shift = static_cast<double>(random() % 5) - 2;
    uint64_t pairs = 0;
    for (const double from : base) {
      for (const double to : fresh) pairs += to - from > shift ? 1 : 0;
    }
    EXPECT_EQ(PairsAbove(base, fresh, shift), pairs);
  }
}

ShiftEstimate Estimate(const std::vector<double>& base, const std::vector<double>& fresh) {
  return EstimateShift(base, fresh, RankSumNull(base.size(), fresh.size()));
}

TEST(EstimateShiftTest, IsTheMedianOfAllDifferencesWithTheTablesInterval) {
  // 25 differences -4 … 4 around 10: the third from each end bounds it.
  const ShiftEstimate estimate = Estimate({1, 2, 3, 4, 5}, {11, 12, 13, 14, 15});
  EXPECT_EQ(estimate.shift, 10);
  EXPECT_EQ(estimate.low, 7);
  EXPECT_EQ(estimate.high, 13);
  EXPECT_EQ(Estimate({1, 2}, {4, 8}).shift, 4.5);  // 2 3 6 7
}

TEST(EstimateShiftTest, BelowFourOfEachThereIsNoInterval) {
  EXPECT_EQ(Estimate({1, 2, 3}, {4, 5, 6}).low, std::nullopt);
  const ShiftEstimate four = Estimate({1, 2, 3, 4}, {11, 12, 13, 14});
  EXPECT_EQ(four.low, 7);
  EXPECT_EQ(four.high, 13);
}

TEST(EstimateShiftTest, ARunThatWentAstrayCountsAsOne) {
  const std::vector<double> base = {1.00, 1.01, 0.99, 1.02, 0.98, 1.005, 0.995, 1.015, 0.985, 1.0};
  std::vector<double> fresh = base;
  fresh[3] = 1e9;
  const ShiftEstimate estimate = Estimate(base, fresh);
  EXPECT_NEAR(estimate.shift, 0, 0.005);
  EXPECT_LT(*estimate.high, 0.03);
}

TEST(EstimateShiftTest, TheIntervalSaysWhatTheTestSays) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> noise;
  for (int round = 0; round < 300; ++round) {
    std::vector<double> base(4 + random() % 8);
    std::vector<double> fresh(4 + random() % 8);
    for (double& value : base) value = noise(random);
    for (double& value : fresh) value = noise(random) + 1;
    const RankSumNull null(base.size(), fresh.size());
    const ShiftEstimate estimate = EstimateShift(base, fresh, null);
    for (const double shift : {-0.5, 0.0, 0.3}) {
      const bool rejects = null.AtLeast(PairsAbove(base, fresh, shift)) <= 0.025;
      EXPECT_EQ(rejects, *estimate.low > shift);
    }
  }
}

TEST(EstimateShiftTest, ItCoversTheTruthAsOftenAsItSays) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise;
  int covered = 0;
  for (int round = 0; round < 1000; ++round) {
    std::vector<double> base(8);
    std::vector<double> fresh(8);
    for (double& value : base) value = noise(random);
    for (double& value : fresh) value = noise(random) + 2;
    const ShiftEstimate estimate = Estimate(base, fresh);
    covered += *estimate.low <= 2 && 2 <= *estimate.high ? 1 : 0;
  }
  EXPECT_GE(covered, 935);
  EXPECT_LE(covered, 980);
}

TEST(MinFiguresForTest, IsWhereTheSmallestPReachesTheLevel) {
  EXPECT_EQ(MinFiguresFor(0.05), 3u);
  EXPECT_EQ(MinFiguresFor(0.049), 4u);
  EXPECT_EQ(MinFiguresFor(0.025), 4u);
  EXPECT_EQ(MinFiguresFor(0.05 / 3), 4u);
  EXPECT_EQ(MinFiguresFor(0.05 / 72), 7u);
  EXPECT_LT(MinFiguresFor(1e-300), 600u);
}

TEST(MedianOfTest, IsTheMiddle) {
  EXPECT_EQ(MedianOf({3}), 3);
  EXPECT_EQ(MedianOf({3, 1, 2}), 2);
  EXPECT_EQ(MedianOf({4, 1, 2, 3}), 2.5);
  EXPECT_TRUE(std::isfinite(MedianOf({1.7e308, 1.6e308})));
  EXPECT_EQ(MedianOf({-1.7e308, 1.7e308}), 0);
}

}  // namespace
}  // namespace verbscope
