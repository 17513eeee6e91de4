// Several tests at once: p values raised so that the chance of even one false rejection among all
// stays below the level (Holm's step-down method, which assumes nothing of how the tests hang
// together). Pure function, any thread.
#ifndef VERBSCOPE_CORE_STATISTICS_HOLM_H_
#define VERBSCOPE_CORE_STATISTICS_HOLM_H_

#include <vector>

namespace verbscope {

// In the order given, each between its p and 1. A test rejects when its own is at most the level.
std::vector<double> HolmAdjusted(const std::vector<double>& p);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_STATISTICS_HOLM_H_
