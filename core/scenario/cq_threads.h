// Several threads that poll and arm one completion queue and wait for its events: nothing may be
// lost, nothing may come twice, and no thread may sleep for ever.
#ifndef VERBSCOPE_CORE_SCENARIO_CQ_THREADS_H_
#define VERBSCOPE_CORE_SCENARIO_CQ_THREADS_H_

#include "core/scenario/scenario.h"

namespace verbscope {

// The responder's queue pairs receive a known number of empty messages into one CQ, in bursts, so
// that its threads sleep in between. Each completion is recorded by what its wr_id says. One check.
Scenario CqThreads();

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_CQ_THREADS_H_
