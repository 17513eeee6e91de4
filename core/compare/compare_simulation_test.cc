// How often a comparison of 10 against 10 runs is right, where the truth is known.
//
// The runs: 2 us; a factor of the whole run, lognormal of 1 %; one run in ten 10 % slower; noise of
// each quantile of 20,000 samples, small at the median, larger in the tail. 200 comparisons each,
// of fixed seeds.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "core/compare/compare.h"
#include "core/compare/testing.h"

namespace verbscope {
namespace {

// Which percentiles the runs state. Those of one run move together, of which Holm's correction
// assumes nothing: with three of them it takes a little more to be sure than with one alone.
enum class Gated { kP99, kAllThree };

struct Setting {
  Gated gated;
  int repetitions;
  int least_caught_percent;  // of a change of 5 %
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed) {}

  Record Runs(double change, uint32_t runs, Gated gated) {
    Record record = Report("send-lat");
    for (uint32_t run = 0; run < runs; ++run) {
      const double factor = change * std::exp(0.01 * Normal()) * (Uniform() < 0.1 ? 1.10 : 1.0);
      Result result = LatencyRun(2000, run);
      LatencyMetrics& latency = *result.metrics.latency;
      latency.buckets.clear();
      const double noise[] = {0.0005, 0.005, 0.03};
      for (size_t i = 0; i < latency.percentiles.size(); ++i) {
        // In whole ns, as a report has them: with ties.
        const double value = 2000 * (1 + 0.15 * static_cast<double>(i)) * factor;
        latency.percentiles[i].value_ns = std::llround(value * std::exp(noise[i] * Normal()));
      }
      if (gated == Gated::kP99) latency.percentiles = {latency.percentiles[1]};
      record.results.push_back(std::move(result));
    }
    return record;
  }

 private:
  // Made here, so that every standard library draws the same.
  double Uniform() { return (static_cast<double>(random_() >> 11) + 0.5) * 0x1p-53; }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) * std::cos(6.283185307179586 * Uniform());
  }
  std::mt19937_64 random_;
};

struct Verdicts {
  int worse = 0;      // comparisons with any metric worse
  int better = 0;     // likewise
  int p99_worse = 0;  // of p99
  int p50_same = 0;
};

Verdicts Simulate(double change, double margin, Setting setting, uint32_t runs = 10) {
  Verdicts verdicts;
  for (int i = 0; i < setting.repetitions; ++i) {
    Simulation simulation(1000 + static_cast<uint64_t>(i));
    const Record base = simulation.Runs(1, runs, setting.gated);
    const Record fresh = simulation.Runs(change, runs, setting.gated);
    const Expected<Comparison> comparison =
        Compare({&base, 1}, {&fresh, 1}, {.margins = {.share = margin}});
    EXPECT_TRUE(comparison);
    if (!comparison) return verdicts;
    bool better = false;
    for (const ComparisonRow& row : comparison->rows) {
      better = better || (row.gated && row.verdict == "better");
      verdicts.p99_worse += row.metric == "p99" && row.verdict == "worse" ? 1 : 0;
      verdicts.p50_same += row.metric == "p50" && row.verdict == "same" ? 1 : 0;
    }
    verdicts.worse += AnyWorse(*comparison) ? 1 : 0;
    verdicts.better += better ? 1 : 0;
  }
  std::printf("# change %.2f margin %.2f: worse %d, better %d, p99 worse %d, p50 same %d of %d\n",
              change, margin, verdicts.worse, verdicts.better, verdicts.p99_worse,
              verdicts.p50_same, setting.repetitions);
  return verdicts;
}

class CompareSimulationTest : public testing::TestWithParam<Setting> {};

TEST_P(CompareSimulationTest, WithoutAChangeAndWithoutAMarginAtMostOneInTwentyIsWorse) {
  const Verdicts verdicts = Simulate(1.0, 0, GetParam());
  EXPECT_LE(verdicts.worse, GetParam().repetitions * 5 / 100);
  EXPECT_LE(verdicts.better, GetParam().repetitions * 5 / 100);
  EXPECT_EQ(verdicts.p50_same, 0);  // of no margin nothing can be inside
}

TEST_P(CompareSimulationTest, WithoutAChangeTheMarginLeavesNone) {
  const Verdicts verdicts = Simulate(1.0, Margins::kDefault, GetParam());
  EXPECT_EQ(verdicts.worse, 0);
  EXPECT_EQ(verdicts.better, 0);
}

TEST_P(CompareSimulationTest, FivePercentAreCaughtThreeTimesInFour) {
  const Verdicts verdicts = Simulate(1.05, Margins::kDefault, GetParam());
  EXPECT_GE(verdicts.worse, GetParam().repetitions * GetParam().least_caught_percent / 100);
  EXPECT_EQ(verdicts.better, 0);
}

TEST_P(CompareSimulationTest, TenPercentAreCaughtNineTimesInTen) {
  const Verdicts verdicts = Simulate(1.10, Margins::kDefault, GetParam());
  EXPECT_GE(verdicts.worse, GetParam().repetitions * 90 / 100);
  EXPECT_GE(verdicts.p99_worse, GetParam().repetitions * 90 / 100);
}

TEST_P(CompareSimulationTest, AChangeOfTheMarginItselfIsRarelyCalledWorse) {
  EXPECT_LE(Simulate(1.03, Margins::kDefault, GetParam()).worse, GetParam().repetitions * 5 / 100);
}

INSTANTIATE_TEST_SUITE_P(Settings, CompareSimulationTest,
                         testing::Values(Setting{Gated::kAllThree, 200, 75},
                                         Setting{Gated::kAllThree, 2000, 72},
                                         Setting{Gated::kP99, 2000, 75}));

constexpr Setting kShort = {Gated::kAllThree, 200, 75};

TEST(CompareSimulationOfRunsTest, FiveRunsNeverSayWorseOfNoChange) {
  EXPECT_EQ(Simulate(1.0, Margins::kDefault, kShort, 5).worse, 0);
}

TEST(CompareSimulationOfRunsTest, TenRunsMostlyProveThatNothingChanged) {
  EXPECT_GE(Simulate(1.0, Margins::kDefault, kShort).p50_same, kShort.repetitions * 75 / 100);
}

}  // namespace
}  // namespace verbscope
