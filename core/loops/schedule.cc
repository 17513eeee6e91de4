#include "core/loops/schedule.h"

#include <cmath>
#include <random>

namespace verbscope {
namespace {

// Relative lengths; any positive sum.
std::vector<double> Shape(Arrival arrival, uint64_t seed) {
  std::vector<double> shape(kScheduleGaps, 1.0);
  if (arrival == Arrival::kFixed) return shape;
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap;
  for (double& value : shape) value = gap(random);
  return shape;
}

}  // namespace

std::vector<uint64_t> MakeGaps(double rate_per_s, Arrival arrival, const TickScale& scale,
                               uint64_t seed) {
  const std::vector<double> shape = Shape(arrival, seed);
  double sum = 0;
  for (const double value : shape) sum += value;
  const double total_ns = 1e9 / rate_per_s * static_cast<double>(kScheduleGaps);
  // Each gap ends at a rounded time, so rounding errors do not add up.
  std::vector<uint64_t> gaps;
  gaps.reserve(kScheduleGaps);
  double passed = 0;
  uint64_t previous = 0;
  const double ticks_per_ns = static_cast<double>(scale.Ticks(1'000'000'000)) * 1e-9;
  for (const double value : shape) {
    passed += value;
    const auto end = static_cast<uint64_t>(std::llround(passed / sum * total_ns * ticks_per_ns));
    gaps.push_back(end - previous);
    previous = end;
  }
  return gaps;
}

}  // namespace verbscope
