// One failed completion, and its explanation: what failed, who noticed, why most likely, what to
// check. The text is for an operator who has never seen a completion status.
//
// Plain data and a pure function; any thread.
#ifndef VERBSCOPE_CORE_CAUSES_COMPLETION_FAILURE_H_
#define VERBSCOPE_CORE_CAUSES_COMPLETION_FAILURE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "transports/device.h"

namespace verbscope {

// Of a completion with an error only wr_id, status, qp_num and vendor_err are valid (manual page of
// ibv_poll_cq). Everything else here comes from our own tables, found by wr_id, never from the
// completion. Every member has an initializer: leave out what is not known.
struct CompletionFailure {
  ibv_wc_status status = IBV_WC_SUCCESS;
  uint32_t vendor_err = 0;
  uint64_t wr_id = 0;
  uint32_t qp_num = 0;

  uint32_t remote_qp_num = 0;  // 0: not known
  std::string op = {};         // "SEND", "RDMA WRITE", "receive"; empty: not known
  std::optional<uint64_t> size_bytes = {};
  uint64_t message_number = 0;      // counts from 1 on its QP; 0: not known
  uint64_t completions_before = 0;  // good ones on this QP, sends and receives
  uint64_t flushed = 0;             // completions flushed on this QP beside this one
  std::string qp_state = {};        // "ERR", "RTS", as queried; empty: not known

  LinkLayer link_layer = LinkLayer::kUnspecified;
  std::string gid_pair = {};    // both entries as text; empty: not known
  uint32_t path_mtu_bytes = 0;  // 0: not known
  // The largest message that went to and fro on this path before, on another QP.
  std::optional<uint64_t> passed_bytes = {};

  // As in Plan. The RNR timer is the peer's, which the plan sets on both sides.
  uint32_t timeout_code = 14;
  uint32_t retry_count = 6;
  uint32_t rnr_timer_code = 12;
  uint32_t rnr_retry = 6;
};

// kRun with `status` set; kInternal when the status is SUCCESS, which is no failure.
//   RETRY_EXC_ERR without any completion before says that no packet ever came back and, on
//   Ethernet, names UDP port 4791 and the GID pair; it states the time until the device gave up.
//   When smaller packets passed before and the first of a larger size did not, it names the size
//   that the path carries.
//   RNR_RETRY_EXC_ERR states the timer and the number of retries.
//   WR_FLUSH_ERR means that only flushes were seen: the cause is on the other side, or an
//   asynchronous event.
Error ExplainCompletion(const CompletionFailure& failure);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CAUSES_COMPLETION_FAILURE_H_
