// TimeBlocks: the samples of a run cut by time, in bounded memory: up to 64 blocks, each the
// non-empty counters of a Histogram, of which there are up to 32,768 in all blocks together (256
// KiB; fewer blocks where latencies are of very many values). When there is no room for another,
// neighbours are joined two by two, so that all blocks stay about equally long.
//
// One thread at a time.
#ifndef VERBSCOPE_CORE_HISTOGRAM_TIME_BLOCKS_H_
#define VERBSCOPE_CORE_HISTOGRAM_TIME_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/histogram/histogram.h"

namespace verbscope {

struct TimeBlock {
  struct Counter {
    uint64_t index : 16 = 0;  // of Histogram, ascending
    uint64_t count : 48 = 0;
  };
  static_assert(Histogram::kCounters <= 1 << 16);
  double from_s = 0;
  double to_s = 0;
  std::vector<Counter> counters;

  uint64_t samples() const;
  uint64_t SamplesAbove(int64_t ns) const;  // in buckets behind that of `ns`
  // Minimum, maximum, mean and deviation are those of its buckets.
  Histogram ToHistogram() const;
};

class TimeBlocks {
 public:
  static constexpr size_t kMost = 64;
  static constexpr size_t kMostCounters = 32'768;
  static constexpr size_t kFewest = 16;  // that are kept however many counters they take

  // Times ascending, in s; an empty histogram is left out.
  void Add(double from_s, double to_s, const Histogram& histogram);
  // Blocks of the same run that began `offset_s` later.
  void Append(TimeBlocks later, double offset_s);

  const std::vector<TimeBlock>& blocks() const { return blocks_; }

 private:
  void Add(TimeBlock block, size_t parts);
  void JoinNeighbours();
  size_t Counters() const;  // of all blocks

  std::vector<TimeBlock> blocks_;
  size_t parts_per_block_ = 1;  // additions that make one block
  size_t parts_of_last_ = 0;    // that the last block holds so far
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_HISTOGRAM_TIME_BLOCKS_H_
