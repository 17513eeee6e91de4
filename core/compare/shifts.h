// Where a distribution moved: its deciles and its tail before and after. Pure function, any thread.
#ifndef VERBSCOPE_CORE_COMPARE_SHIFTS_H_
#define VERBSCOPE_CORE_COMPARE_SHIFTS_H_

#include <vector>

#include "core/compare/run_table.h"

namespace verbscope {

// Medians of the runs' quantiles; nothing for a quantile that one set's runs do not state.
std::vector<ShiftRow> ShiftsOf(const JoinedRuns& runs);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COMPARE_SHIFTS_H_
