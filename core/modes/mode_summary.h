// What event-vs-poll makes of its results: a row per load and way of waiting, all runs together,
// and how each differs from busy polling. Sentences about the rows are in advice.h.
//
// Latency, rates and their differences are those of the requester; CPU time is the responder's,
// which answers at the peer's pace in every way of waiting. Histograms of all runs are joined for
// percentiles; a percentile with too few samples stays absent. A difference is taken run by run,
// between runs that lie side by side, and its interval comes from those differences alone: the runs
// are the units that repeat, not the messages.
//
// Pure functions; any thread.
#ifndef VERBSCOPE_CORE_MODES_MODE_SUMMARY_H_
#define VERBSCOPE_CORE_MODES_MODE_SUMMARY_H_

#include <string>
#include <vector>

#include "core/plan/mode_plan.h"
#include "core/record/record.h"

namespace verbscope {

// "closed loop", "10,000/s", "80 % of busy", "streaming".
std::string LoadText(const Load& load);
// "12,345".
std::string RateText(double per_s);

// Rows in the order of LoadsOf and, within a load, of ModesOf; those without a result are left out.
ModeSummary SummarizeModes(const Plan& plan, const std::vector<Result>& results);

// The check that no wake-up was lost, of both sides.
CheckRow LostWakeUpsRow(const std::vector<Result>& results);

// Mean with its two-sided 95 % interval by Student's t; no interval with fewer than two values.
// Needs one value.
Difference MeanOf(const std::vector<double>& values);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_MODES_MODE_SUMMARY_H_
