#include "core/statistics/holm.h"

#include <gtest/gtest.h>

#include <vector>

namespace verbscope {
namespace {

void ExpectAdjusted(const std::vector<double>& p, const std::vector<double>& expected) {
  const std::vector<double> adjusted = HolmAdjusted(p);
  ASSERT_EQ(adjusted.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(adjusted[i], expected[i], 1e-12) << i;
}

TEST(HolmTest, TheSmallestCountsForAllTheLargestForItself) {
  ExpectAdjusted({0.01, 0.02, 0.03, 0.04}, {0.04, 0.06, 0.06, 0.06});
  ExpectAdjusted({0.04, 0.001, 0.02}, {0.04, 0.003, 0.04});
}

TEST(HolmTest, OneTestStaysAsItIsAndNoneIsNone) {
  ExpectAdjusted({0.03}, {0.03});
  ExpectAdjusted({}, {});
}

TEST(HolmTest, NothingExceedsOneAndEqualOnesStayEqual) {
  ExpectAdjusted({0.6, 0.9, 1.0}, {1, 1, 1});
  ExpectAdjusted({0.01, 0.01}, {0.02, 0.02});
}

}  // namespace
}  // namespace verbscope
