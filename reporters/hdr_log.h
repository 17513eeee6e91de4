// Latency of records as files of HdrHistogram tools: the interval log, and the percentile
// distribution that its plotter draws. Pure functions, any thread.
#ifndef VERBSCOPE_REPORTERS_HDR_LOG_H_
#define VERBSCOPE_REPORTERS_HDR_LOG_H_

#include <span>
#include <string>

#include "core/record/record.h"

namespace verbscope {

// An interval log of version 1.3: values in ns, the column of the maximum in ms, times in seconds
// since the earliest record began. A line for each stretch of time of a result that kept them, else
// one for the whole. Tag= names the result without commas and blanks and is different for each;
// the log is to be split by it. Results of a sweep all begin with their record: when each was
// measured is not in a record.
std::string RenderHdrLog(std::span<const Record> records);

// A percentile distribution (.hgrm) of each result, values in us, under a line `# NAME`.
std::string RenderHgrm(std::span<const Record> records);

}  // namespace verbscope

#endif  // VERBSCOPE_REPORTERS_HDR_LOG_H_
