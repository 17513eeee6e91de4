// What else moved where a figure got better or worse: counters of the devices and of the system.
// They are no proof of a cause, only where to look first. Pure function, any thread.
#ifndef VERBSCOPE_CORE_COMPARE_CAUSES_H_
#define VERBSCOPE_CORE_COMPARE_CAUSES_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/compare/run_table.h"

namespace verbscope {

inline constexpr size_t kMaxCausesOfAPoint = 6;

// Whole sentences, "out_of_sequence of the responder: 0 -> 812 per run", those that moved most
// first. `sides`: the same point as each side saw it.
//
// A counter moved when its runs are apart by an exact test at 2.5 %, per message as well as per run
// (a counter of packets follows the number of messages and explains nothing), and its median by a
// tenth.
std::vector<std::string> CausesOf(std::span<const JoinedRuns* const> sides);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_CAUSES_H_
