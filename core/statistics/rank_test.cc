#include "core/statistics/rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace verbscope {
namespace {

constexpr Percentile kAll[] = {kP50, kP90, kP99, kP99_9, kP99_99};

// An independent oracle: the distribution of Binomial(n, q) by logarithms of the gamma function,
// P(B ≤ k) for k = 0…n. Good to 1e-9 for the n used here.
std::vector<double> BinomialCdf(uint64_t n, double q) {
  std::vector<double> cdf;
  double sum = 0;
  const double count = static_cast<double>(n);
  for (uint64_t i = 0; i <= n; ++i) {
    const double k = static_cast<double>(i);
    sum += std::exp(std::lgamma(count + 1) - std::lgamma(k + 1) - std::lgamma(count - k + 1) +
                    k * std::log(q) + (count - k) * std::log1p(-q));
    cdf.push_back(sum);
  }
  return cdf;
}

TEST(Percentile, ParsesAndPrints) {
  for (const char* text :
       {"50", "90", "99", "99.9", "99.99", "99.99999", "0.0000001", "5", "0.5"}) {
    const std::optional<Percentile> percentile = Percentile::Parse(text);
    ASSERT_TRUE(percentile) << text;
    EXPECT_EQ(percentile->Text(), text);
  }
  EXPECT_EQ(Percentile::Parse("99.90"), kP99_9);
  EXPECT_EQ(Percentile::Parse("99.99"), kP99_99);
  EXPECT_EQ(Percentile::Parse("05"), Percentile(50'000'000));
}

TEST(Percentile, RefusesWhatIsNoPercentile) {
  for (const char* text : {"", ".", "0", "00", "100", "101", "50.", ".5", "99.9x", "x", "9 9", "-5",
                           "+5", "99.9.9", "99.99999999", "1e1", "0.0000000"}) {
    EXPECT_EQ(Percentile::Parse(text), std::nullopt) << text;
  }
}

TEST(NearestRank, IsTheSmallestRankAtOrAboveTheShare) {
  EXPECT_EQ(NearestRank(kP50, 0), 0u);
  EXPECT_EQ(NearestRank(kP50, 1), 1u);
  EXPECT_EQ(NearestRank(kP50, 2), 1u);
  EXPECT_EQ(NearestRank(kP50, 3), 2u);
  EXPECT_EQ(NearestRank(kP99, 100), 99u);
  EXPECT_EQ(NearestRank(kP99, 101), 100u);
  EXPECT_EQ(NearestRank(kP99_99, 1), 1u);
}

TEST(NearestRank, HasNoFloatingPointError) {
  // In doubles 0.999 * 1000 and 0.9 * 10 are not integers on every path; here they must be.
  EXPECT_EQ(NearestRank(kP99_9, 1000), 999u);
  EXPECT_EQ(NearestRank(kP90, 10), 9u);
  for (uint64_t k = 1; k <= 10'000; ++k) ASSERT_EQ(NearestRank(kP99_99, 10'000 * k), 9'999 * k);
  const uint64_t huge = uint64_t{1} << 63;
  EXPECT_EQ(NearestRank(kP50, huge), huge / 2);
  EXPECT_EQ(NearestRank(kP50, huge - 1), huge / 2);
}

TEST(IsResolved, NeedsOneSampleBeyondThePercentile) {
  const std::pair<Percentile, uint64_t> kNeeded[] = {
      {kP50, 2}, {kP90, 10}, {kP99, 100}, {kP99_9, 1000}, {kP99_99, 10'000}};
  for (const auto& [percentile, n] : kNeeded) {
    EXPECT_TRUE(IsResolved(percentile, n)) << percentile.Text();
    EXPECT_FALSE(IsResolved(percentile, n - 1)) << percentile.Text();
  }
}

TEST(MinSamples, EqualTheKnownTable) {
  const struct {
    Percentile percentile;
    uint64_t one_sided;
    uint64_t two_sided;
  } kTable[] = {{kP50, 5, 6},
                {kP90, 29, 36},
                {kP99, 299, 368},
                {kP99_9, 2995, 3688},
                {kP99_99, 29'956, 36'887}};
  for (const auto& row : kTable) {
    EXPECT_EQ(MinSamplesOneSided(row.percentile), row.one_sided) << row.percentile.Text();
    EXPECT_EQ(MinSamplesTwoSided(row.percentile), row.two_sided) << row.percentile.Text();
  }
}

TEST(MinSamples, AreWhereTheBoundsBegin) {
  for (const Percentile percentile : {kP50, kP90, kP99, kP99_9, kP99_99, Percentile(999'999'000),
                                      Percentile(100'000'000), Percentile(1'000'000)}) {
    const uint64_t two = MinSamplesTwoSided(percentile);
    const RankBounds at_two = TwoSided95(percentile, two);
    const RankBounds before_two = TwoSided95(percentile, two - 1);
    EXPECT_TRUE(at_two.lower && at_two.upper) << percentile.Text();
    EXPECT_FALSE(before_two.lower && before_two.upper) << percentile.Text();
    const uint64_t one = MinSamplesOneSided(percentile);
    EXPECT_TRUE(OneSided95(percentile, one).upper) << percentile.Text();
    EXPECT_FALSE(OneSided95(percentile, one - 1).upper) << percentile.Text();
  }
}

TEST(TwoSided95, CoversTheSampleQuantilesOfTheKnownTable) {
  const struct {
    Percentile percentile;
    uint64_t n;
    double low;   // percent
    double high;  // percent
    double unit;  // last digit stated
  } kTable[] = {{kP99, 1'000, 98.2, 99.7, 0.1},
                {kP99, 10'000, 98.79, 99.20, 0.01},
                {kP99, 100'000, 98.94, 99.06, 0.01},
                {kP99_9, 10'000, 99.82, 99.97, 0.01},
                {kP99_9, 100'000, 99.88, 99.92, 0.01},
                {kP99_9, 1'000'000, 99.894, 99.906, 0.001},
                {kP99_99, 1'000'000, 99.988, 99.992, 0.001}};
  for (const auto& row : kTable) {
    const RankBounds bounds = TwoSided95(row.percentile, row.n);
    ASSERT_TRUE(bounds.lower && bounds.upper);
    const double n = static_cast<double>(row.n);
    // Rank r covers the quantiles from (r − 1) / n to r / n.
    EXPECT_NEAR(100 * static_cast<double>(*bounds.lower - 1) / n, row.low, row.unit * 0.501)
        << row.percentile.Text() << " n=" << row.n;
    EXPECT_NEAR(100 * static_cast<double>(*bounds.upper) / n, row.high, row.unit * 0.501)
        << row.percentile.Text() << " n=" << row.n;
  }
}

TEST(RankBounds, AreTheTightestRanksWithTheStatedConfidence) {
  for (const uint64_t n : {1, 2, 5, 6, 7, 20, 36, 100, 367, 368, 1000, 4999, 20'000}) {
    for (const Percentile percentile : {Percentile(50'000'000), kP50, kP90, kP99, kP99_9}) {
      const std::vector<double> cdf = BinomialCdf(n, static_cast<double>(percentile.parts()) / 1e9);
      const auto below = [&](uint64_t rank) {
        return rank == 0 ? 0 : cdf[rank - 1];
      };  // P(B < rank)
      const std::pair<RankBounds, double> kCases[] = {{TwoSided95(percentile, n), 0.025},
                                                      {OneSided95(percentile, n), 0.05}};
      for (const auto& [bounds, tail] : kCases) {
        SCOPED_TRACE(percentile.Text() + " n=" + std::to_string(n));
        const uint64_t lower = bounds.lower.value_or(0);
        EXPECT_LE(below(lower), tail + 1e-9);
        EXPECT_GT(below(lower + 1), tail - 1e-9);
        const uint64_t upper = bounds.upper.value_or(n + 1);
        EXPECT_LE(1 - below(upper), tail + 1e-9);
        EXPECT_GT(1 - below(upper - 1), tail - 1e-9);
      }
    }
  }
}

TEST(RankBounds, EncloseThePointEstimateAndWidenWithConfidence) {
  for (uint64_t n = 40'000; n < 4'000'000'000'000; n *= 7) {
    for (const Percentile percentile : kAll) {
      const RankBounds two = TwoSided95(percentile, n);
      const RankBounds one = OneSided95(percentile, n);
      ASSERT_TRUE(two.lower && two.upper && one.lower && one.upper);
      EXPECT_LE(*two.lower, *one.lower);
      EXPECT_LE(*one.lower, NearestRank(percentile, n));
      EXPECT_GE(*one.upper, NearestRank(percentile, n));
      EXPECT_GE(*two.upper, *one.upper);
    }
  }
}

TEST(RankBounds, ApproximationGivesTheExactRanksOnBothSidesOfTheSwitch) {
  for (const Percentile percentile : {kP50, kP90, kP99, kP99_9, Percentile(10'000'000)}) {
    const double q = static_cast<double>(percentile.parts()) / 1e9;
    for (const double variance : {3e5, 9.9e5, 1.01e6, 2e6, 5e6}) {
      const auto n = static_cast<uint64_t>(variance / (q * (1 - q))) | 1;
      for (const auto& tail : {rank_internal::kTail2_5, rank_internal::kTail5}) {
        EXPECT_EQ(rank_internal::ApproximateBounds(percentile, n, tail),
                  rank_internal::ExactBounds(percentile, n, tail))
            << percentile.Text() << " n=" << n;
      }
    }
  }
}

TEST(RankBounds, HoldUpToTheLargestCount) {
  const uint64_t n = uint64_t{1} << 63;
  const RankBounds bounds = TwoSided95(kP50, n);
  ASSERT_TRUE(bounds.lower && bounds.upper);
  // Symmetric: rank l from below is rank l from above.
  EXPECT_EQ(*bounds.lower, n - *bounds.upper + 1);
  const double half_width = 1.959963984540054 * std::sqrt(static_cast<double>(n)) / 2;
  const uint64_t below_median = n / 2 - *bounds.lower;
  EXPECT_NEAR(static_cast<double>(below_median), half_width, 2);
  // Exact as well as large: few samples beyond the percentile.
  const Percentile extreme(999'999'999);
  const RankBounds tail = TwoSided95(extreme, 100'000'000'000);  // 100 samples expected beyond
  ASSERT_TRUE(tail.lower && tail.upper);
  // Exact Poisson limits of a mean of 100: at most 120 beyond, at least 81.
  EXPECT_EQ(100'000'000'000 - *tail.lower, 120u);
  EXPECT_EQ(100'000'000'000 - *tail.upper + 1, 81u);
}

TEST(RankBounds, NoSamplesHaveNone) {
  for (const Percentile percentile : kAll) {
    EXPECT_EQ(TwoSided95(percentile, 0), RankBounds{});
    EXPECT_EQ(OneSided95(percentile, 0), RankBounds{});
  }
}

TEST(ScaleRank, KeepsTheSampleQuantileAndRoundsAway) {
  EXPECT_EQ(ScaleRankUp(997, 1000, 1000), 997u);
  EXPECT_EQ(ScaleRankDown(983, 1000, 1000), 983u);
  EXPECT_EQ(ScaleRankUp(997, 1000, 10'000), 9970u);
  EXPECT_EQ(ScaleRankDown(983, 1000, 10'000), 9821u);
  EXPECT_EQ(ScaleRankUp(1, 3, 10), 4u);    // a third of 10, rounded up
  EXPECT_EQ(ScaleRankDown(2, 3, 10), 4u);  // from a third of 10: covers 3/10 to 4/10
  EXPECT_EQ(ScaleRankUp(1000, 1000, 7), 7u);
  EXPECT_EQ(ScaleRankDown(1, 1000, 7), 1u);
  EXPECT_EQ(ScaleRankDown(1000, 1000, 7), 7u);
  const uint64_t huge = uint64_t{1} << 63;
  EXPECT_EQ(ScaleRankUp(1, 2, huge), huge / 2);
}

}  // namespace
}  // namespace verbscope
