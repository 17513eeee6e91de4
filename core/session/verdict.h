// What a finished session comes to. Pure function on plain data; the session's thread.
#ifndef VERBSCOPE_CORE_SESSION_VERDICT_H_
#define VERBSCOPE_CORE_SESSION_VERDICT_H_

#include "core/gates/judge.h"
#include "core/record/record.h"

namespace verbscope {

// record.verdict and exit_code: no error and at least one sample is a pass; of a command of steps,
// at least one check and none failed. Assertions (record.gates) that failed, or that the samples
// could not decide, count on top of that, by the policy.
void SetVerdict(Record& record, OnInconclusive policy = OnInconclusive::kReport);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_VERDICT_H_
