// Rows of event-vs-poll in words: where a way of waiting stops to pay, and which to use. Every
// figure in a sentence is one of the rows it is made from.
//
// Pure functions; any thread.
#ifndef VERBSCOPE_CORE_MODES_ADVICE_H_
#define VERBSCOPE_CORE_MODES_ADVICE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "core/record/record.h"

namespace verbscope {

// A mode pays under a load when it saves at least this share of busy polling's CPU time, the runs
// agree that it saves any, and it answers at least kSustained of what is offered.
inline constexpr double kPaysPercent = 10;
inline constexpr double kSustained = 0.95;

// One per mode other than busy, over the open loads in ascending order of rate: "up to 10,000/s
// event costs +6.1 us p50 and saves 97 % CPU; at 640,000/s it saves nothing". None without busy
// polling to compare with.
std::vector<std::string> CrossoverSentences(const std::vector<ModeRow>& rows);

// For the lowest latency, for the least CPU time, and, for each offered rate, the cheapest mode
// within a p99: `p99_limit_ns`, or twice that of the best where it is 0.
std::vector<std::string> Advice(const std::vector<ModeRow>& rows, int64_t p99_limit_ns);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_MODES_ADVICE_H_
