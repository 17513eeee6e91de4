// Histogram: every latency sample of a run in constant memory, from 1 ns to 100 s at three
// significant digits, in the layout of HdrHistogram (so that its tools read what hdr_codec writes).
//
// Layout: values below 2,048 ns have a counter each; above, every power of two is cut into 1,024
// counters, so that a counter's width is at most 0.1 % of its value. 28,672 counters of 8 bytes,
// 224 KiB, are allocated at construction and never again. As in other HdrHistograms, the last power
// of two is covered whole: the true end of the range is kRangeNs = 137.4 s, not 100 s.
//
// Exact beside the counters: number, minimum, maximum, mean and standard deviation of what was
// recorded. Percentiles are exact to one bucket. Out of range, nothing is dropped: a larger value
// counts in the last bucket and in overflow(), and max() still tells it; a value below 0 (a clock
// that stepped back) counts as 0 and in negative().
//
// Coordinated omission is not corrected: samples are kept as recorded. A closed loop states the
// base latency; an open loop records from the intended send time, which needs no correction.
//
// One thread records into one histogram, with no locks; Merge joins them afterwards. Copying copies
// the counters.
//
//   Histogram histogram;
//   histogram.Record(scale.Nanoseconds(CpuCounter::Now() - start));
//   histogram.ValueAtRank(NearestRank(kP99, histogram.count())).highest_ns;
#ifndef VERBSCOPE_CORE_HISTOGRAM_HISTOGRAM_H_
#define VERBSCOPE_CORE_HISTOGRAM_HISTOGRAM_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace verbscope {

// All values a bucket may stand for, both ends included, in ns.
struct BucketRange {
  int64_t lowest_ns = 0;
  int64_t highest_ns = 0;
  bool operator==(const BucketRange&) const = default;
};

class Histogram {
 public:
  static constexpr int kSignificantDigits = 3;
  static constexpr int64_t kLowestNs = 1;                 // resolution
  static constexpr int64_t kHighestNs = 100'000'000'000;  // the promised range, 100 s
  static constexpr int kHalfBits = 10;                    // 1,024 counters per power of two
  static constexpr int64_t kHalf = int64_t{1} << kHalfBits;
  static constexpr int kBuckets = 27;  // 2,048 * 2^26 is the first above 100 s
  static constexpr int64_t kRangeNs = (2 * kHalf << (kBuckets - 1)) - 1;  // largest value in range
  static constexpr size_t kCounters = static_cast<size_t>((kBuckets + 1) * kHalf);
  // Larger values are taken as this (39 hours), so that 2^32 of them cannot overflow the sums.
  static constexpr int64_t kLargestNs = (int64_t{1} << 47) - 1;

  Histogram() : counters_(kCounters) {}

  // Counts one sample. A few ns; neither branches nor calls.
  void Record(int64_t ns) {
    negative_ += ns < 0 ? 1 : 0;
    overflow_ += ns > kRangeNs ? 1 : 0;
    const int64_t value = std::clamp<int64_t>(ns, 0, kLargestNs);
    counters_[IndexOf(std::min(value, kRangeNs))]++;
    count_++;
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    // 128 bits: squares of 100 s are 2^73, so 64 bits would wrap at the first sample. Integers keep
    // mean and deviation exact whatever the order of samples and merges, unlike running doubles.
    const auto wide = static_cast<unsigned __int128>(value);
    sum_ += wide;
    sum_of_squares_ += wide * wide;
  }

  // Adds all samples of `other`, as if they had been recorded here.
  void Merge(const Histogram& other);

  // Adds `count` samples known only by bucket `index` < kCounters (decoded files). Minimum and
  // maximum become the bucket's outer edges and the sums take its middle, so from then on min, max,
  // mean and stdev are exact to the bucket only. No more than 2^53 samples in all.
  void AddToBucket(size_t index, uint64_t count);

  // Forgets all samples. Clears the touched range of counters only.
  void Reset();

  uint64_t count() const { return count_; }
  uint64_t overflow() const { return overflow_; }         // samples above kRangeNs
  uint64_t negative() const { return negative_; }         // samples below 0
  int64_t min() const { return count_ == 0 ? 0 : min_; }  // ns; 0 when empty
  int64_t max() const { return max_; }                    // ns; 0 when empty
  double mean() const;                                    // ns; 0 when empty
  double stdev() const;  // ns, of the population (divides by count, not count - 1); 0 when empty

  // The bucket of the sample with this rank in ascending order, 1 ≤ rank ≤ count() (clamped to
  // that), narrowed to [min(), max()]. {0, 0} when empty. Up to 28,672 steps; not for the fast
  // path.
  BucketRange ValueAtRank(uint64_t rank) const;

  // Calls fn(int64_t from_ns, int64_t to_ns, uint64_t count) for each non-empty bucket, ascending;
  // both ends inclusive. The last bucket ends at max() if samples overflowed.
  template <class Fn>
  void ForEachBucket(Fn&& fn) const {
    if (count_ == 0) return;
    for (size_t i = FirstIndex(); i <= LastIndex(); ++i) {
      if (counters_[i] == 0) continue;
      const BucketRange range = RangeOf(i);
      fn(range.lowest_ns, i == kCounters - 1 ? std::max(range.highest_ns, max_) : range.highest_ns,
         counters_[i]);
    }
  }

  // The raw counters, for the codec. All counters outside FirstIndex()..LastIndex() are 0.
  uint64_t counter(size_t index) const { return counters_[index]; }
  size_t FirstIndex() const { return IndexOf(std::min(min(), kRangeNs)); }
  size_t LastIndex() const { return IndexOf(std::min(max_, kRangeNs)); }

  // The counter of a value, 0 ≤ ns ≤ kRangeNs: the value's highest 11 bits, below the power of two.
  static constexpr size_t IndexOf(int64_t ns) {
    const auto value = static_cast<uint64_t>(ns);
    const int shift = 63 - kHalfBits - std::countl_zero(value | (2 * kHalf - 1));
    return (static_cast<size_t>(shift) << kHalfBits) + static_cast<size_t>(value >> shift);
  }
  // Inverse of IndexOf, index < kCounters: all values that the counter stands for.
  static constexpr BucketRange RangeOf(size_t index) {
    const int shift = std::max(0, static_cast<int>(index >> kHalfBits) - 1);
    const int64_t top = static_cast<int64_t>(index) - (static_cast<int64_t>(shift) << kHalfBits);
    return {top << shift, ((top + 1) << shift) - 1};
  }

 private:
  std::vector<uint64_t> counters_;
  uint64_t count_ = 0;
  uint64_t overflow_ = 0;
  uint64_t negative_ = 0;
  int64_t min_ = std::numeric_limits<int64_t>::max();
  int64_t max_ = 0;
  unsigned __int128 sum_ = 0;
  unsigned __int128 sum_of_squares_ = 0;
  // Histograms of several threads may lie side by side; the hot fields then stay on lines of their
  // own. (Not alignas: address sanitizer's stack of GCC 12 does not honour it.)
  [[maybe_unused]] std::array<std::byte, 64> padding_{};
};

static_assert(Histogram::kRangeNs >= Histogram::kHighestNs);
static_assert(Histogram::kCounters == 28'672);
static_assert(Histogram::IndexOf(Histogram::kRangeNs) == Histogram::kCounters - 1);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_HISTOGRAM_HISTOGRAM_H_
