#include "core/histogram/time_blocks.h"

#include <algorithm>
#include <utility>

namespace verbscope {
namespace {

// More than a counter of a block holds is 2^48 samples of one value: years of them.
constexpr uint64_t kMostCount = (uint64_t{1} << 48) - 1;
TimeBlock::Counter CounterOf(uint64_t index, uint64_t count) {
  TimeBlock::Counter counter;
  counter.index = index & 0xffff;
  counter.count = std::min(count, kMostCount) & kMostCount;
  return counter;
}

TimeBlock BlockOf(double from_s, double to_s, const Histogram& histogram) {
  TimeBlock block{.from_s = from_s, .to_s = to_s, .counters = {}};
  for (size_t i = histogram.FirstIndex(); i <= histogram.LastIndex(); ++i) {
    if (histogram.counter(i) == 0) continue;
    block.counters.push_back(CounterOf(i, histogram.counter(i)));
  }
  block.counters.shrink_to_fit();
  return block;
}

TimeBlock Joined(const TimeBlock& first, const TimeBlock& second) {
  TimeBlock block{.from_s = first.from_s, .to_s = second.to_s, .counters = {}};
  auto a = first.counters.begin();
  auto b = second.counters.begin();
  while (a != first.counters.end() || b != second.counters.end()) {
    const bool take_a =
        b == second.counters.end() || (a != first.counters.end() && a->index <= b->index);
    const bool take_b =
        a == first.counters.end() || (b != second.counters.end() && b->index <= a->index);
    const uint64_t index = take_a ? a->index : b->index;
    uint64_t count = 0;
    if (take_a) count += a++->count;
    if (take_b) count += b++->count;
    block.counters.push_back(CounterOf(index, count));
  }
  block.counters.shrink_to_fit();
  return block;
}

}  // namespace

uint64_t TimeBlock::samples() const {
  uint64_t sum = 0;
  for (const Counter& counter : counters) sum += counter.count;
  return sum;
}

uint64_t TimeBlock::SamplesAbove(int64_t ns) const {
  const size_t index = Histogram::IndexOf(std::clamp<int64_t>(ns, 0, Histogram::kRangeNs));
  uint64_t sum = 0;
  for (const Counter& counter : counters) sum += counter.index > index ? counter.count : 0;
  return sum;
}

Histogram TimeBlock::ToHistogram() const {
  Histogram histogram;
  for (const Counter& counter : counters) histogram.AddToBucket(counter.index, counter.count);
  return histogram;
}

void TimeBlocks::Add(double from_s, double to_s, const Histogram& histogram) {
  if (histogram.count() > 0) Add(BlockOf(from_s, to_s, histogram), 1);
}

void TimeBlocks::Append(TimeBlocks later, double offset_s) {
  for (TimeBlock& block : later.blocks_) {
    block.from_s += offset_s;
    block.to_s += offset_s;
    Add(std::move(block), later.parts_per_block_);
  }
}

void TimeBlocks::Add(TimeBlock block, size_t parts) {
  // Blocks of very different lengths would hide how much equal ones vary.
  while (parts_per_block_ < parts && !blocks_.empty()) JoinNeighbours();
  parts_per_block_ = std::max(parts_per_block_, parts);
  if (!blocks_.empty() && parts_of_last_ < parts_per_block_) {
    blocks_.back() = Joined(blocks_.back(), block);
    parts_of_last_ += parts;
    return;
  }
  const bool full = blocks_.size() == kMost || (blocks_.size() >= 2 * kFewest &&
                                                Counters() + block.counters.size() > kMostCounters);
  if (full) JoinNeighbours();
  blocks_.push_back(std::move(block));
  parts_of_last_ = parts;
}

size_t TimeBlocks::Counters() const {
  size_t sum = 0;
  for (const TimeBlock& block : blocks_) sum += block.counters.size();
  return sum;
}

void TimeBlocks::JoinNeighbours() {
  const size_t count = blocks_.size();
  for (size_t i = 0; i < count / 2; ++i) {
    blocks_[i] = Joined(blocks_[2 * i], blocks_[2 * i + 1]);
  }
  if (count % 2 == 1) {
    blocks_[count / 2] = std::move(blocks_[count - 1]);  // half a block, to be filled
  } else {
    parts_of_last_ += parts_per_block_;
  }
  blocks_.resize((count + 1) / 2);
  parts_per_block_ *= 2;
}

}  // namespace verbscope
