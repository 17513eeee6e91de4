// The runs of two sets of reports side by side: those of the same point and side belong together.
// Refers to the records it was made from; any thread.
#ifndef VERBSCOPE_CORE_COMPARE_RUN_TABLE_H_
#define VERBSCOPE_CORE_COMPARE_RUN_TABLE_H_

#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/record/record.h"

namespace verbscope {

// Of each set: every pair of runs is looked at.
inline constexpr size_t kMaxRunsOfASet = 2000;

// One point as one side saw it, in every run of every report of both sets.
struct JoinedRuns {
  Point point;  // of the base
  std::string side;
  std::vector<const Result*> base;
  std::vector<const Result*> fresh;
  double clock_step_ns = 0;  // the largest of the clocks that measured it; 0: not known
};

struct RunTable {
  std::vector<JoinedRuns> rows;        // in the order of the base; none has an empty set
  std::vector<std::string> unmatched;  // results of one set only, whole sentences
};

// Joins by point without its members in `ignored`, or, with `by_order`, the n-th distinct point of
// each side of one set with the n-th of the other. Fails, kUsage, where a set has points that
// differ in an ignored member only, or too many runs.
Expected<RunTable> JoinRuns(std::span<const Record> base, std::span<const Record> fresh,
                            const std::set<std::string>& ignored, bool by_order);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_RUN_TABLE_H_
