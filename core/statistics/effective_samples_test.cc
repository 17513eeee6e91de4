#include "core/statistics/effective_samples.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace verbscope {
namespace {

using Blocks = std::vector<BlockCount>;

TEST(EffectiveSamples, EvenBlocksLoseNothing) {
  const Blocks blocks(20, {.samples = 1000, .above = 10});
  EXPECT_EQ(EffectiveSamples(blocks), 20'000u);
}

TEST(EffectiveSamples, AKnownChiSquare) {
  // Expected 10 of 1,000 in each; off by 10 in two of five: 2 * 100 / 9.9 over 4 degrees of freedom
  // is 5.0505.
  Blocks blocks(5, {.samples = 1000, .above = 10});
  blocks[0].above = 0;
  blocks[1].above = 20;
  EXPECT_EQ(EffectiveSamples(blocks), 990u);
}

TEST(EffectiveSamples, OneBurstIsWorthLittle) {
  Blocks blocks(20, {.samples = 1000, .above = 0});
  blocks[7].above = 200;  // the whole 1 % in one block
  // The factor is 200 over 0.99: 20,000 / 202.
  EXPECT_EQ(EffectiveSamples(blocks), 99u);
}

TEST(EffectiveSamples, SaysNothingWithoutEnoughToLookAt) {
  EXPECT_EQ(EffectiveSamples({}), std::nullopt);
  EXPECT_EQ(EffectiveSamples(Blocks(4, {.samples = 1000, .above = 10})), std::nullopt);
  EXPECT_EQ(EffectiveSamples(Blocks(20, {.samples = 1000, .above = 0})), std::nullopt);
  EXPECT_EQ(EffectiveSamples(Blocks(20, {.samples = 10, .above = 10})), std::nullopt);
  Blocks mostly_empty(20);
  mostly_empty[3] = {.samples = 100, .above = 1};
  EXPECT_EQ(EffectiveSamples(mostly_empty), std::nullopt);
}

TEST(EffectiveSamples, IndependentSamplesKeepMostOfTheirNumber) {
  std::mt19937_64 random(7);
  std::binomial_distribution<uint64_t> above(10'000, 0.01);
  double sum = 0;
  constexpr int kRuns = 200;
  for (int run = 0; run < kRuns; ++run) {
    Blocks blocks(20);
    for (BlockCount& block : blocks) block = {.samples = 10'000, .above = above(random)};
    sum += static_cast<double>(EffectiveSamples(blocks).value()) / 200'000;
  }
  EXPECT_GT(sum / kRuns, 0.8);
  EXPECT_LE(sum / kRuns, 1.0);
}

// Samples that come eight at a time are worth an eighth.
TEST(EffectiveSamples, RunsOfEqualSamplesAreFound) {
  std::mt19937_64 random(8);
  std::binomial_distribution<uint64_t> above(1'250, 0.01);
  double sum = 0;
  constexpr int kRuns = 200;
  for (int run = 0; run < kRuns; ++run) {
    Blocks blocks(40);
    for (BlockCount& block : blocks) block = {.samples = 10'000, .above = 8 * above(random)};
    sum += static_cast<double>(EffectiveSamples(blocks).value()) / 400'000;
  }
  EXPECT_GT(sum / kRuns, 0.09);
  EXPECT_LT(sum / kRuns, 0.17);
}

}  // namespace
}  // namespace verbscope
