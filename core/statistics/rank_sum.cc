#include "core/statistics/rank_sum.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace verbscope {
namespace {

// P(U = u) by u. The largest of all figures is of the second set with probability b / (a + b) and
// then above all a of the first; else it says nothing about the others. Sums of positive numbers
// only: nothing overflows and nothing cancels.
std::vector<double> ExactProbabilities(size_t n, size_t m) {
  std::vector<std::vector<double>> by_second(m + 1, std::vector<double>{1.0});  // of a = 0
  for (size_t a = 1; a <= n; ++a) {
    std::vector<std::vector<double>> next(m + 1);
    next[0] = {1.0};
    for (size_t b = 1; b <= m; ++b) {
      const double second = static_cast<double>(b) / static_cast<double>(a + b);
      std::vector<double> sum(a * b + 1, 0.0);
      const std::vector<double>& without_second = next[b - 1];
      for (size_t u = 0; u < without_second.size(); ++u) sum[u + a] += second * without_second[u];
      const std::vector<double>& without_first = by_second[b];
      for (size_t u = 0; u < without_first.size(); ++u) sum[u] += (1 - second) * without_first[u];
      next[b] = std::move(sum);
    }
    by_second = std::move(next);
  }
  return by_second[m];
}

// The value of that rank, from 0, of what is left in any order.
double Select(std::vector<double>& values, uint64_t rank) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

RankSumNull::RankSumNull(size_t n, size_t m) : pairs_(uint64_t{n} * m) {
  assert(n > 0 && m > 0);
  const double runs = static_cast<double>(n) + static_cast<double>(m);
  sd_ = std::sqrt(static_cast<double>(pairs_) * (runs + 1) / 12);
  if (pairs_ > kExactPairs) return;
  at_least_ = ExactProbabilities(n, m);
  for (size_t u = at_least_.size() - 1; u-- > 0;) at_least_[u] += at_least_[u + 1];
}

double RankSumNull::AtLeast(uint64_t u) const {
  if (u == 0) return 1;
  if (u > pairs_) return 0;
  if (!at_least_.empty()) return std::min(1.0, at_least_[u]);
  // Half a step of continuity: the probability of u itself belongs to it.
  const double above = static_cast<double>(u) - 0.5 - static_cast<double>(pairs_) / 2;
  return 0.5 * std::erfc(above / sd_ / std::sqrt(2.0));
}

uint64_t RankSumNull::OutsideCount(double level) const {
  // By symmetry P(U < c) is P(U ≥ pairs − c + 1), which grows with c.
  uint64_t low = 0;
  uint64_t high = pairs_ / 2;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    if (AtLeast(pairs_ - middle + 1) <= level) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

uint64_t PairsAbove(std::span<const double> base, std::span<const double> fresh, double shift) {
  constexpr double kRounding = 1e-12;
  std::vector<double> sorted(base.begin(), base.end());
  std::ranges::sort(sorted);
  uint64_t pairs = 0;
  for (const double value : fresh) {
    const double threshold = value - shift - kRounding;
    pairs += static_cast<uint64_t>(std::ranges::lower_bound(sorted, threshold) - sorted.begin());
  }
  return pairs;
}

ShiftEstimate EstimateShift(std::span<const double> base, std::span<const double> fresh,
                            const RankSumNull& null) {
  constexpr double kOneSide = 0.025;
  std::vector<double> differences;
  differences.reserve(base.size() * fresh.size());
  for (const double from : base) {
    for (const double to : fresh) differences.push_back(to - from);
  }
  assert(!differences.empty());
  const uint64_t pairs = differences.size();
  ShiftEstimate estimate;
  estimate.shift = (Select(differences, (pairs - 1) / 2) + Select(differences, pairs / 2)) / 2;
  const uint64_t outside = null.OutsideCount(kOneSide);
  if (outside == 0) return estimate;
  estimate.low = Select(differences, outside - 1);
  estimate.high = Select(differences, pairs - outside);
  return estimate;
}

uint64_t MinFiguresFor(double level) {
  assert(level > 0);
  double smallest = 1;  // p of n figures of each set that are all apart: 1 / binomial(2n, n)
  uint64_t n = 0;
  while (smallest > level) {
    ++n;
    const double figures = static_cast<double>(n);
    smallest *= figures / (2 * (2 * figures - 1));
  }
  return std::max<uint64_t>(n, 1);
}

double MedianOf(std::vector<double> values) {
  assert(!values.empty());
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  return values[middle - 1] / 2 + values[middle] / 2;  // their sum may be no double
}

}  // namespace verbscope
