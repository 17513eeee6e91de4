// The functions that the inline verbs of <infiniband/verbs.h> reach on a soft device.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_VERBS_OPS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_VERBS_OPS_H_

#include <infiniband/verbs.h>

#include "transports/soft/device/objects.h"
#include "transports/soft/options/hook_options.h"

namespace verbscope::soft {

// ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq, ibv_req_notify_cq (data_path.cc).
void FillOps(ibv_context_ops& ops, const EventTiming& timing);
// Posts the requests built in `qp` if all of them fit, and none otherwise: 0, ENOMEM or EINVAL.
int PostWhole(SoftQp& qp);
// ibv_wr_* (work_request_api.cc).
void FillExtendedQp(ibv_qp_ex& qp);
// ibv_start_poll and what follows it (extended_poll.cc).
void FillExtendedCq(ibv_cq_ex& cq);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_VERBS_OPS_H_
