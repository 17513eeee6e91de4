#include "core/scenario/explain.h"

#include <fmt/core.h>

#include <utility>

#include "core/causes/completion_failure.h"
#include "core/scenario/scenario.h"
#include "core/selection/gid_pair.h"

namespace verbscope {

Error ExplainOf(const FailedQp& failed, const ibv_wc& completion, std::string op,
                uint64_t size_bytes, uint64_t number) {
  CompletionFailure failure;
  failure.status = completion.status;
  failure.vendor_err = completion.vendor_err;
  failure.wr_id = completion.wr_id;
  failure.qp_num = completion.qp_num;
  failure.op = std::move(op);
  failure.size_bytes = size_bytes;
  failure.message_number = number;
  failure.completions_before = number > 0 ? number - 1 : 0;
  if (failed.index < failed.remote.qps.size()) {
    failure.remote_qp_num = failed.remote.qps[failed.index].qpn;
  }
  if (Expected<ibv_qp_state> state = failed.stage.device().QueryQpState(failed.qp); state) {
    failure.qp_state = QpStateName(*state);
  }
  const PathOptions& path = failed.stage.path();
  failure.link_layer = path.port.link_layer;
  failure.gid_pair =
      fmt::format("{} with {}", DescribeGid(path.gid), DescribeGid(failed.remote.gid));
  failure.path_mtu_bytes = path.path_mtu_bytes;
  failure.timeout_code = failed.plan.timeout_code;
  failure.retry_count = failed.plan.retry_count;
  failure.rnr_timer_code = failed.plan.rnr_timer_code;
  failure.rnr_retry = failed.plan.rnr_retry;
  return ExplainCompletion(failure);
}

}  // namespace verbscope
