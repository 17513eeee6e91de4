// Ranks: which of n samples in ascending order is a percentile, and between which two ranks the
// true percentile lies with 95 % confidence, whatever the distribution of the samples.
//
// The count B of samples that do not exceed the true q-quantile is Binomial(n, q). So the l-th
// smallest sample is at most the quantile with probability P(B ≥ l), and the u-th smallest is at
// least the quantile with probability P(B < u). Nothing else is assumed but that the samples are
// independent; neighbours in a run are not quite, so for a verdict use the effective sample count
// and bring its ranks back with ScaleRankUp and ScaleRankDown.
//
// Ranks count from 1. Percentiles are integers (parts per billion), so that no rounding decides
// which sample is p99.9 of 1,000. Pure functions, any thread; at most some 100 µs, for any n.
#ifndef VERBSCOPE_CORE_STATISTICS_RANK_H_
#define VERBSCOPE_CORE_STATISTICS_RANK_H_

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace verbscope {

// A percentile between 0 and 100, both excluded, with up to seven digits after the point.
class Percentile {
 public:
  static constexpr uint32_t kWhole = 1'000'000'000;

  // `parts` per billion, 0 < parts < kWhole: 999'000'000 is p99.9.
  explicit constexpr Percentile(uint32_t parts) : parts_(parts) {
    assert(parts > 0 && parts < kWhole);
  }
  // "99.9"; nullopt unless digits with at most one point and seven digits behind it, in range.
  static std::optional<Percentile> Parse(std::string_view text);

  constexpr uint32_t parts() const { return parts_; }
  // As in keys and option values: "50", "99.9", no trailing zeros.
  std::string Text() const;
  constexpr bool operator==(const Percentile&) const = default;

 private:
  uint32_t parts_;
};

inline constexpr Percentile kP50(500'000'000);
inline constexpr Percentile kP90(900'000'000);
inline constexpr Percentile kP99(990'000'000);
inline constexpr Percentile kP99_9(999'000'000);
inline constexpr Percentile kP99_99(999'900'000);

// Rank of the percentile among n samples, by the nearest-rank definition: the smallest rank such
// that at least that share of the samples is at or below it, ⌈q n⌉. 0 for n = 0.
uint64_t NearestRank(Percentile percentile, uint64_t n);

// Whether n samples can tell this percentile from the maximum at all: n ≥ 1 / (1 − q).
bool IsResolved(Percentile percentile, uint64_t n);

// Ranks that enclose the true percentile. Each is absent if n is too small for it.
struct RankBounds {
  std::optional<uint64_t> lower;
  std::optional<uint64_t> upper;
  bool operator==(const RankBounds&) const = default;
};

// The true percentile lies in [lower, upper] with at least 95 % confidence, at most 2.5 % on either
// side. In terms of sample quantiles, rank r covers ((r − 1) / n, r / n].
RankBounds TwoSided95(Percentile percentile, uint64_t n);

// Each bound for itself: the percentile is at least `lower` with at least 95 % confidence, and it
// is at most `upper` with at least 95 % confidence (together only 90 %).
RankBounds OneSided95(Percentile percentile, uint64_t n);

// The smallest n for which TwoSided95 has both ends: 368 for p99.
uint64_t MinSamplesTwoSided(Percentile percentile);
// The smallest n for which OneSided95 has an upper bound: 299 for p99.
uint64_t MinSamplesOneSided(Percentile percentile);

// The rank among `to` samples that stands for an upper (lower) bound `rank` among `from` samples,
// 1 ≤ rank ≤ from: the same sample quantile, rounded away from the percentile.
uint64_t ScaleRankUp(uint64_t rank, uint64_t from, uint64_t to);
uint64_t ScaleRankDown(uint64_t rank, uint64_t from, uint64_t to);

// For tests: the two ways the bounds are computed, below and above a variance of kExactVariance.
namespace rank_internal {
// Probability allowed on one side and its standard normal quantile.
struct Tail {
  double probability;
  double z;
};
inline constexpr Tail kTail2_5{0.025, 1.959963984540054};
inline constexpr Tail kTail5{0.05, 1.6448536269514722};
inline constexpr double kExactVariance = 1e6;
RankBounds ExactBounds(Percentile percentile, uint64_t n, Tail tail);
RankBounds ApproximateBounds(Percentile percentile, uint64_t n, Tail tail);
}  // namespace rank_internal

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_STATISTICS_RANK_H_
