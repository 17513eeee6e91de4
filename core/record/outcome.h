// The verdict of a run that did not break, and the exit code that belongs to it. Any thread.
#ifndef VERBSCOPE_CORE_RECORD_OUTCOME_H_
#define VERBSCOPE_CORE_RECORD_OUTCOME_H_

#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/record/record.h"

namespace verbscope {

// `verdict`: "pass", "fail" or "inconclusive".
inline void SetOutcome(std::string_view verdict, Record& record) {
  record.verdict = verdict;
  record.exit_code = verdict == "pass"   ? 0
                     : verdict == "fail" ? ExitCode(ErrorClass::kVerification)
                                         : ExitCode(ErrorClass::kInconclusive);
}

// The same of one that broke.
inline void SetError(Error error, Record& record) {
  record.verdict = "error";
  record.exit_code = ExitCode(error.error_class);
  record.error = std::move(error);
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_RECORD_OUTCOME_H_
