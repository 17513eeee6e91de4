// One request on one fresh queue pair, and what both sides hear of it: the steps that may break it.
// The responder tells what it saw; the requester has both halves and makes the check.
#ifndef VERBSCOPE_CORE_SCENARIO_ATTEMPT_H_
#define VERBSCOPE_CORE_SCENARIO_ATTEMPT_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/scenario/scenario.h"

namespace verbscope {

struct AttemptKind {
  std::string name;  // of the check
  // SEND, SEND_WITH_IMM, RDMA_WRITE, RDMA_WRITE_WITH_IMM or RDMA_READ.
  ibv_wr_opcode opcode = IBV_WR_SEND;
  uint64_t size_bytes = 0;
  // Length of the receive that is posted; 0: with no SGE. None: no receive.
  std::optional<uint64_t> receive_bytes = {};
  bool bad_rkey = false;
  // None: the plan's.
  std::optional<uint32_t> rnr_retry = {};
  std::optional<uint32_t> rnr_timer_code = {};

  ibv_wc_status requester = IBV_WC_SUCCESS;  // what the standard asks for
  // None: nothing completes at the responder.
  std::optional<ibv_wc_status> responder = {};
  std::string_view rule = {};  // of expectations.h; empty: no device may differ
  std::string source;
  // Of the responder's queue pair after a request that failed; the requester's is in error. One
  // more check.
  std::optional<ibv_qp_state> responder_state = {};
  // When the request failed and the queue pairs are in error: a later receive does not rescue the
  // message, and both work again after a reset. Two more checks.
  bool recovers = false;
  // Round trips of this request, as many as the plan's iterations; where it consumes no receive.
  bool measure = false;
};

Scenario Attempt(const AttemptKind& kind);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_ATTEMPT_H_
