#include "core/statistics/effective_samples.h"

#include <algorithm>

namespace verbscope {

std::optional<uint64_t> EffectiveSamples(std::span<const BlockCount> blocks) {
  uint64_t samples = 0;
  uint64_t above = 0;
  size_t filled = 0;
  for (const BlockCount& block : blocks) {
    samples += block.samples;
    above += block.above;
    filled += block.samples > 0 ? 1 : 0;
  }
  if (filled < kMinBlocks || above == 0 || above >= samples) return std::nullopt;
  const double share = static_cast<double>(above) / static_cast<double>(samples);
  double chi_square = 0;
  for (const BlockCount& block : blocks) {
    if (block.samples == 0) continue;
    const double expected = static_cast<double>(block.samples) * share;
    const double off = static_cast<double>(block.above) - expected;
    chi_square += off * off / (expected * (1 - share));
  }
  const double factor = std::max(1.0, chi_square / static_cast<double>(filled - 1));
  // Not cast before it is known to fit: double holds every count of a run.
  const double effective = static_cast<double>(samples) / factor;
  return std::clamp<uint64_t>(static_cast<uint64_t>(effective + 0.5), 1, samples);
}

}  // namespace verbscope
