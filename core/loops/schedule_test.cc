#include "core/loops/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace verbscope {
namespace {

double Sum(const std::vector<uint64_t>& gaps) {
  return static_cast<double>(std::accumulate(gaps.begin(), gaps.end(), uint64_t{0}));
}

TEST(Schedule, FixedGapsAreEqualToATickAndNoneIsLost) {
  const TickScale scale(2.45e9, 1);
  for (const double rate : {1.0, 3.0, 99'999.0, 1e6, 7e8}) {
    const std::vector<uint64_t> gaps = MakeGaps(rate, Arrival::kFixed, scale, 1);
    ASSERT_EQ(gaps.size(), kScheduleGaps);
    const auto [low, high] = std::ranges::minmax(gaps);
    EXPECT_LE(high - low, 1u) << rate;
    EXPECT_NEAR(Sum(gaps), 2.45e9 / rate * kScheduleGaps, 1) << rate;
  }
}

TEST(Schedule, PoissonGapsHaveTheMeanAndTheSpreadOfTheirName) {
  const std::vector<uint64_t> gaps =
      MakeGaps(1'000, Arrival::kPoisson, TickScale(1e9, 1), /*seed=*/7);
  EXPECT_NEAR(Sum(gaps), 1e6 * kScheduleGaps, 1);
  double squares = 0;
  for (const uint64_t gap : gaps) squares += std::pow(static_cast<double>(gap) - 1e6, 2);
  // Of an exponential distribution the deviation is the mean.
  EXPECT_NEAR(std::sqrt(squares / kScheduleGaps), 1e6, 0.1e6);
  EXPECT_EQ(gaps, MakeGaps(1'000, Arrival::kPoisson, TickScale(1e9, 1), 7));
  EXPECT_NE(gaps, MakeGaps(1'000, Arrival::kPoisson, TickScale(1e9, 1), 8));
}

}  // namespace
}  // namespace verbscope
