// When verb-cost has to stop: the user interrupts, or the command's deadline passes. Looked at
// between calls, never inside a timed one.
//
// Plain; the measuring thread.
#ifndef VERBSCOPE_CORE_COST_COST_LIMITS_H_
#define VERBSCOPE_CORE_COST_COST_LIMITS_H_

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace verbscope {

struct CostLimits {
  const Interrupt& interrupt;
  Deadline deadline;

  // One relaxed load.
  bool interrupted() const { return interrupt.raised(); }
  // kInterrupted or kDeadline, when it is time.
  Status Check() const;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COST_COST_LIMITS_H_
