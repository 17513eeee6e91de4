// How many independent samples would leave a percentile as uncertain as the samples of a run do,
// which come in bursts: an interrupt or a pause hits neighbours together.
//
// The run is cut into blocks of time. If samples were independent, the number above the percentile
// would vary from block to block as a binomial count does; the factor by which it varies more
// (Pearson's chi-square over its degrees of freedom) is the factor by which the variance of the
// percentile's rank is larger, so that n samples are worth n over that factor. Dependence over less
// than a block shows between blocks, since it makes their counts vary; dependence over the whole
// run does not: no single run can show that.
//
// Pure functions, any thread.
#ifndef VERBSCOPE_CORE_STATISTICS_EFFECTIVE_SAMPLES_H_
#define VERBSCOPE_CORE_STATISTICS_EFFECTIVE_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace verbscope {

// One stretch of time of a run.
struct BlockCount {
  uint64_t samples = 0;
  uint64_t above = 0;  // of them, above the percentile of the whole run; at most `samples`
};

// With fewer blocks the variation between them says too little about anything.
inline constexpr size_t kMinBlocks = 5;

// At least 1, at most the number of samples: blocks that vary less than independent ones are luck.
// Absent with fewer than kMinBlocks blocks that hold samples, or if none or all of the samples are
// above.
std::optional<uint64_t> EffectiveSamples(std::span<const BlockCount> blocks);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_STATISTICS_EFFECTIVE_SAMPLES_H_
