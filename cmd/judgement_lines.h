// Why a run that did not break did not pass, for standard error: a line each for the first check
// and the first assertion that failed, the first assertion that could not be decided, and what is
// proven to be worse. Pure function, any thread.
#ifndef VERBSCOPE_CMD_JUDGEMENT_LINES_H_
#define VERBSCOPE_CMD_JUDGEMENT_LINES_H_

#include <string>
#include <vector>

#include "core/record/record.h"

namespace verbscope {

std::vector<std::string> JudgementLines(const Record& record);

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_JUDGEMENT_LINES_H_
