// The error of a run that broke with a failed completion of a scenario's queue pair: what both
// kinds of them (FreshQp, QpSet) say of it. The session's thread.
#ifndef VERBSCOPE_CORE_SCENARIO_EXPLAIN_H_
#define VERBSCOPE_CORE_SCENARIO_EXPLAIN_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "core/base/error.h"
#include "core/endpoint/connect.h"
#include "core/plan/plan.h"

namespace verbscope {

class Stage;

struct FailedQp {
  const Stage& stage;
  const Plan& plan;  // of this queue pair
  const EndpointInfo& remote;
  ibv_qp* qp = nullptr;
  size_t index = 0;  // of the remote's queue pairs
};

// `op`: "SEND", "receive"; `number` from 1.
Error ExplainOf(const FailedQp& failed, const ibv_wc& completion, std::string op,
                uint64_t size_bytes, uint64_t number);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_EXPLAIN_H_
