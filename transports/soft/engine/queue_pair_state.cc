// ibv_modify_qp: which transition needs which attributes, and what each attribute does.
#include <cerrno>

#include "transports/soft/engine/queue_pair.h"
#include "transports/soft/engine/rc_timers.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft {
namespace {

constexpr unsigned kRemoteAccess =
    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint8_t kRnrRetryForever = 7;
constexpr int kPathOptions = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

}  // namespace

// IBTA table 91 (RC) and ibv_modify_qp(3).
std::optional<QueuePair::TransitionMask> QueuePair::MaskOf(ibv_qp_state from, ibv_qp_state to) {
  using Mask = TransitionMask;
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return Mask{};
  constexpr int kInit = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (from == IBV_QPS_RESET && to == IBV_QPS_INIT) return Mask{.required = kInit, .optional = 0};
  if (from == IBV_QPS_INIT && to == IBV_QPS_INIT) return Mask{.required = 0, .optional = kInit};
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) {
    return Mask{.required = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                .optional = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX};
  }
  constexpr int kLive =
      IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | kPathOptions;
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS) {
    return Mask{.required = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC,
                .optional = kLive};
  }
  if (from == IBV_QPS_RTS && to == IBV_QPS_RTS) return Mask{.required = 0, .optional = kLive};
  if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) {
    return Mask{.required = 0, .optional = IBV_QP_EN_SQD_ASYNC_NOTIFY};
  }
  if (from == IBV_QPS_SQD && to == IBV_QPS_RTS) return Mask{.required = 0, .optional = kLive};
  if (from == IBV_QPS_SQD && to == IBV_QPS_SQD) {
    return Mask{.required = 0,
                .optional = IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                            IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC |
                            IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER |
                            kPathOptions};
  }
  return std::nullopt;
}

bool QueuePair::ValuesInRange(const ibv_qp_attr& attributes, int mask) const {
  const auto has = [mask](int bit) { return (mask & bit) != 0; };
  constexpr unsigned kKnownAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  return !(has(IBV_QP_CUR_STATE) && attributes.cur_qp_state != context_.state) &&
         !(has(IBV_QP_PKEY_INDEX) && attributes.pkey_index != 0) &&
         !(has(IBV_QP_ACCESS_FLAGS) && (attributes.qp_access_flags & ~kKnownAccess) != 0) &&
         !(has(IBV_QP_PATH_MTU) &&
           (attributes.path_mtu < IBV_MTU_256 || attributes.path_mtu > IBV_MTU_4096)) &&
         !(has(IBV_QP_DEST_QPN) && attributes.dest_qp_num > kPsnMask) &&
         !(has(IBV_QP_TIMEOUT) && attributes.timeout > 31) &&
         !(has(IBV_QP_RETRY_CNT) && attributes.retry_cnt > 7) &&
         !(has(IBV_QP_RNR_RETRY) && attributes.rnr_retry > 7) &&
         !(has(IBV_QP_MIN_RNR_TIMER) && attributes.min_rnr_timer > 31);
}

int QueuePair::CheckModify(const ibv_qp_attr& attributes, int mask, ibv_qp_state to) const {
  if (context_.env.Has(Defect::kAnyTransition)) {
    const bool known = to <= IBV_QPS_ERR && to != IBV_QPS_SQE;
    return known && ValuesInRange(attributes, mask) ? 0 : EINVAL;
  }
  const std::optional<TransitionMask> allowed = MaskOf(context_.state, to);
  if (!allowed || (mask & allowed->required) != allowed->required ||
      (mask & ~(allowed->required | allowed->optional | IBV_QP_STATE)) != 0 ||
      !ValuesInRange(attributes, mask)) {
    return EINVAL;
  }
  if ((mask & IBV_QP_STATE) == 0 && (to == IBV_QPS_RESET || to == IBV_QPS_ERR)) {
    return mask == 0 ? 0 : EINVAL;
  }
  return 0;
}

int QueuePair::Modify(const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state to = (mask & IBV_QP_STATE) != 0 ? attributes.qp_state : context_.state;
  if (const int result = CheckModify(attributes, mask, to); result != 0) return result;
  Apply(attributes, mask);
  EnterState(to, attributes, mask);
  return 0;
}

void QueuePair::Apply(const ibv_qp_attr& from, int mask) {
  const auto has = [mask](int bit) { return (mask & bit) != 0; };
  ibv_qp_attr& to = attributes_;
  if (has(IBV_QP_PKEY_INDEX)) to.pkey_index = from.pkey_index;
  if (has(IBV_QP_PORT)) to.port_num = from.port_num;
  if (has(IBV_QP_ACCESS_FLAGS)) {
    to.qp_access_flags = from.qp_access_flags;
    context_.access = context_.env.Has(Defect::kNoRights) ? kRemoteAccess : from.qp_access_flags;
  }
  if (has(IBV_QP_AV)) to.ah_attr = from.ah_attr;
  // Requests know how many packets they take (Defect::kAnyTransition may come with some).
  if (has(IBV_QP_PATH_MTU) && requester_.Idle()) {
    to.path_mtu = from.path_mtu;
    context_.mtu = 128U << from.path_mtu;
  }
  if (has(IBV_QP_DEST_QPN)) context_.dest_qpn = to.dest_qp_num = from.dest_qp_num;
  if (has(IBV_QP_RQ_PSN)) to.rq_psn = from.rq_psn & kPsnMask;
  if (has(IBV_QP_SQ_PSN)) to.sq_psn = from.sq_psn & kPsnMask;
  if (has(IBV_QP_MAX_DEST_RD_ATOMIC)) {
    context_.max_dest_rd_atomic = to.max_dest_rd_atomic = from.max_dest_rd_atomic;
  }
  if (has(IBV_QP_MAX_QP_RD_ATOMIC)) {
    context_.max_rd_atomic = to.max_rd_atomic = from.max_rd_atomic;
  }
  if (has(IBV_QP_MIN_RNR_TIMER)) context_.min_rnr_timer = to.min_rnr_timer = from.min_rnr_timer;
  if (has(IBV_QP_TIMEOUT)) {
    to.timeout = from.timeout;
    context_.ack_timeout_ns = AckTimeoutNs(from.timeout);
  }
  if (has(IBV_QP_RETRY_CNT)) context_.retry_cnt = to.retry_cnt = from.retry_cnt;
  if (has(IBV_QP_RNR_RETRY)) {
    to.rnr_retry = from.rnr_retry;
    context_.rnr_retry =
        context_.env.Has(Defect::kRnrGivesUpNever) ? kRnrRetryForever : from.rnr_retry;
  }
  if (has(IBV_QP_RETRY_CNT) || has(IBV_QP_RNR_RETRY)) requester_.ReloadRetries();
}

void QueuePair::EnterState(ibv_qp_state to, const ibv_qp_attr& attributes, int mask) {
  const ibv_qp_state from = context_.state;
  if (to == IBV_QPS_RESET) {
    Reset();
    return;
  }
  if (to == IBV_QPS_ERR) {
    EnterError(std::nullopt);
    responder_.Flush(true);  // asked for by the program: nothing more is said
    return;
  }
  context_.state = to;
  attributes_.qp_state = to;
  StartHalves(from, to);
  if (from == IBV_QPS_RTS && to == IBV_QPS_SQD) {
    drain_event_ = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) != 0 && attributes.en_sqd_async_notify != 0;
    if (drain_event_) CheckDrained();
  }
}

void QueuePair::StartHalves(ibv_qp_state from, ibv_qp_state to) {
  if (from == IBV_QPS_INIT && to == IBV_QPS_RTR) responder_.Start(attributes_.rq_psn);
  if (from == IBV_QPS_RTR && to == IBV_QPS_RTS && requester_.Idle()) {
    requester_.Start(attributes_.sq_psn);
  }
  if (!context_.env.Has(Defect::kAnyTransition)) return;
  // States that were skipped begin to work too. Where requests wait, the requester goes on.
  const bool idle = from == IBV_QPS_RESET || from == IBV_QPS_INIT || from == IBV_QPS_ERR;
  const bool skips_init = from == IBV_QPS_RESET || from == IBV_QPS_ERR;
  if ((skips_init && to == IBV_QPS_RTR) || (idle && to == IBV_QPS_RTS)) {
    responder_.Start(attributes_.rq_psn);
  }
  if (idle && to == IBV_QPS_RTS && requester_.Idle()) requester_.Start(attributes_.sq_psn);
}

void QueuePair::Query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) const {
  attributes = attributes_;
  attributes.qp_state = attributes.cur_qp_state = context_.state;
  attributes.sq_draining = context_.state == IBV_QPS_SQD && !requester_.Drained() ? 1 : 0;
  attributes.rq_psn = responder_.expected_psn();
  attributes.sq_psn = requester_.next_psn();
  init = {};
  init.qp_type = IBV_QPT_RC;
  init.cap = options_.cap;
  init.sq_sig_all = options_.signal_all ? 1 : 0;
}

}  // namespace verbscope::soft
