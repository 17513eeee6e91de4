// The steps of rnr-test in which the receiver comes back in time. Those in which it does not are
// RunOutOfReceives.
#ifndef VERBSCOPE_CORE_SCENARIO_RNR_STEPS_H_
#define VERBSCOPE_CORE_SCENARIO_RNR_STEPS_H_

#include <cstdint>

#include "core/scenario/scenario.h"

namespace verbscope {

// rnr_retry 7: every round's messages wait until the receiver, late on purpose, posts its receives.
// All must arrive. Latencies: at the requester from the post, at the responder from its receive.
Scenario RnrRecovery();  // rnr_recovery.cc

// More messages in flight than receives, which come in batches: latency and throughput of one
// timer. rnr_retry 7, so that starvation is no error.
Scenario RnrStarved(uint32_t timer_code);  // rnr_starved.cc

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_RNR_STEPS_H_
