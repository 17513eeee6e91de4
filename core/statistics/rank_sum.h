// Two small sets of figures, one per run: whether those of the second tend to be larger, by how
// much, and how sure that is. Ranks only (Mann and Whitney; Hodges and Lehmann), so that a run that
// went astray counts as one run and not by how far it went.
//
// U is the number of pairs, one figure of each set, in which the second is larger. Without a
// difference each order of all figures is equally likely, which gives U its distribution whatever
// that of the figures: exact where n·m is at most kExactPairs, by the normal distribution beyond.
//
// Pure functions of finite numbers; any thread.
#ifndef VERBSCOPE_CORE_STATISTICS_RANK_SUM_H_
#define VERBSCOPE_CORE_STATISTICS_RANK_SUM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace verbscope {

// The distribution of U without a difference, of n and m figures, each at least 1.
class RankSumNull {
 public:
  static constexpr uint64_t kExactPairs = 2500;

  RankSumNull(size_t n, size_t m);

  // P(U ≥ u): 1 for 0, 0 above n·m.
  double AtLeast(uint64_t u) const;
  // The largest c with P(U < c) ≤ level: so many of the ordered differences lie outside an interval
  // on each side. 0: there is none.
  uint64_t OutsideCount(double level) const;

 private:
  uint64_t pairs_;
  double sd_;
  std::vector<double> at_least_;  // by u; empty: approximated
};

// How many pairs have `fresh` above `base` by more than `shift`. What is equal to it but for
// rounding does not count, so a tie never speaks for a difference.
uint64_t PairsAbove(std::span<const double> base, std::span<const double> fresh, double shift);

struct ShiftEstimate {
  double shift = 0;           // median of all differences fresh − base
  std::optional<double> low;  // two-sided, 95 %; absent: too few figures
  std::optional<double> high;
};

// Needs a figure of each set; `null` of their numbers. Takes memory for all their pairs.
ShiftEstimate EstimateShift(std::span<const double> base, std::span<const double> fresh,
                            const RankSumNull& null);

// The fewest figures of each set whose smallest one-sided p is at most `level`, 0 < level < 1.
uint64_t MinFiguresFor(double level);

// The middle one, or the mean of both middle ones. Needs a value.
double MedianOf(std::vector<double> values);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_STATISTICS_RANK_SUM_H_
