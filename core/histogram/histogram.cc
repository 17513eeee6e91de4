#include "core/histogram/histogram.h"

#include <cassert>
#include <cmath>

namespace verbscope {

void Histogram::Merge(const Histogram& other) {
  if (other.count_ == 0) return;
  for (size_t i = other.FirstIndex(); i <= other.LastIndex(); ++i) {
    counters_[i] += other.counters_[i];
  }
  count_ += other.count_;
  overflow_ += other.overflow_;
  negative_ += other.negative_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  sum_of_squares_ += other.sum_of_squares_;
}

void Histogram::AddToBucket(size_t index, uint64_t count) {
  assert(index < kCounters);
  if (count == 0) return;
  const BucketRange range = RangeOf(index);
  counters_[index] += count;
  count_ += count;
  min_ = std::min(min_, range.lowest_ns);
  max_ = std::max(max_, range.highest_ns);
  const int64_t half_width = (range.highest_ns - range.lowest_ns + 1) / 2;
  const auto middle =
      static_cast<unsigned __int128>(range.lowest_ns) + static_cast<unsigned __int128>(half_width);
  sum_ += middle * count;
  sum_of_squares_ += middle * middle * count;
}

void Histogram::Reset() {
  if (count_ == 0) return;
  std::fill(counters_.begin() + static_cast<std::ptrdiff_t>(FirstIndex()),
            counters_.begin() + static_cast<std::ptrdiff_t>(LastIndex()) + 1, 0);
  count_ = overflow_ = negative_ = 0;
  min_ = std::numeric_limits<int64_t>::max();
  max_ = 0;
  sum_ = sum_of_squares_ = 0;
}

double Histogram::mean() const {
  if (count_ == 0) return 0;
  // Whole and fractional part apart: a double holds 53 bits, the sum may have more.
  const unsigned __int128 whole = sum_ / count_;
  const unsigned __int128 rest = sum_ % count_;
  return static_cast<double>(whole) + static_cast<double>(rest) / static_cast<double>(count_);
}

double Histogram::stdev() const {
  if (count_ == 0) return 0;
  // E[x²] − mean² in doubles cancels when the deviation is small beside the mean. So the values are
  // shifted by the whole part of the mean first: with m = ⌊sum / n⌋,
  //   Σ(x − m)² = Σx² − 2m Σx + n m²   and   Σ(x − m) = sum mod n,
  // in integers modulo 2^128. Intermediate terms may wrap; the result is below 2^128 and exact.
  const unsigned __int128 whole = sum_ / count_;
  const unsigned __int128 squares =
      sum_of_squares_ - 2 * whole * sum_ + whole * whole * static_cast<unsigned __int128>(count_);
  const double n = static_cast<double>(count_);
  const double rest = static_cast<double>(sum_ % count_) / n;  // in [0, 1)
  return std::sqrt(std::max(0.0, static_cast<double>(squares) / n - rest * rest));
}

BucketRange Histogram::ValueAtRank(uint64_t rank) const {
  if (count_ == 0) return {};
  const uint64_t wanted = std::clamp<uint64_t>(rank, 1, count_);
  uint64_t seen = 0;
  size_t index = FirstIndex();
  for (const size_t last = LastIndex(); index < last; ++index) {
    seen += counters_[index];
    if (seen >= wanted) break;
  }
  BucketRange range = RangeOf(index);
  if (index == kCounters - 1) range.highest_ns = max_;  // overflow lies in here
  return {std::clamp(range.lowest_ns, min_, max_), std::clamp(range.highest_ns, min_, max_)};
}

}  // namespace verbscope
