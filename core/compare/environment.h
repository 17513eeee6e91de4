// Where a report was made, as texts by field. Pure functions, any thread.
#ifndef VERBSCOPE_CORE_COMPARE_ENVIRONMENT_H_
#define VERBSCOPE_CORE_COMPARE_ENVIRONMENT_H_

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/record/record.h"

namespace verbscope {

// Field and value, in the order of a report.
using FieldTexts = std::vector<std::pair<std::string, std::string>>;

// Tool, path, and of both sides host, system, processor, pinned CPUs, device, port, link, clock.
// Empty: not known.
FieldTexts EnvironmentOf(const Record& record);

// What the hosts themselves did to a thread that never rests, where it is far apart: a number that
// is never twice the same differs only from three times the other on.
std::vector<SetDifference> JitterDifferences(std::span<const Record> base,
                                             std::span<const Record> fresh);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_ENVIRONMENT_H_
