// What ibv_post_send, ibv_post_recv, ibv_poll_cq and ibv_req_notify_cq reach: checks at posting,
// and the accounting of queue slots.
#include <algorithm>
#include <cerrno>

#include "transports/fake/fake_objects.h"

namespace verbscope::fake {
namespace {

// 0 or the errno of a request that is refused at posting.
int Accept(FakeQp& qp, const ibv_send_wr& wr) {
  if (qp.current != IBV_QPS_RTS && qp.current != IBV_QPS_ERR) return EINVAL;
  if (qp.sends_posted - qp.sends_freed >= qp.cap.max_send_wr) return ENOMEM;
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > qp.cap.max_send_sge ||
      !Supported(wr.opcode)) {
    return EINVAL;
  }
  SendRequest request = {
      .wr = wr, .sges = {wr.sg_list, wr.sg_list + wr.num_sge}, .inline_bytes = {}};
  if (IsAtomic(wr.opcode) && TotalBytes(request.sges) != sizeof(uint64_t)) return EINVAL;
  if ((wr.send_flags & IBV_SEND_INLINE) != 0) {
    const bool outgoing = IsSend(wr.opcode) || IsWrite(wr.opcode);
    if (!outgoing || TotalBytes(request.sges) > qp.cap.max_inline_data) return EINVAL;
    for (const ibv_sge& sge : request.sges) {
      request.inline_bytes.insert(request.inline_bytes.end(), At(sge.addr),
                                  At(sge.addr) + sge.length);
    }
  }
  request.number = ++qp.sends_posted;
  qp.send_queue.push_back(std::move(request));
  return 0;
}

int Accept(FakeQp& qp, const ibv_recv_wr& wr) {
  if (qp.current == IBV_QPS_RESET) return EINVAL;  // IBA C10-97.2.1
  if (qp.recv_slots_used >= qp.cap.max_recv_wr) return ENOMEM;
  if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > qp.cap.max_recv_sge) return EINVAL;
  qp.recv_queue.push_back({.wr_id = wr.wr_id, .sges = {wr.sg_list, wr.sg_list + wr.num_sge}});
  ++qp.recv_slots_used;
  return 0;
}

int PostSend(ibv_qp* base, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  FakeQp& qp = Of(base);
  const std::lock_guard lock(qp.fabric->mutex);
  int result = 0;
  for (; wr != nullptr && result == 0; wr = wr->next) {
    result = Accept(qp, *wr);
    if (result != 0) *bad_wr = wr;
  }
  qp.fabric->Progress(qp);
  return result;
}

int PostRecv(ibv_qp* base, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  FakeQp& qp = Of(base);
  State& state = *qp.fabric;
  const std::lock_guard lock(state.mutex);
  int result = 0;
  for (; wr != nullptr && result == 0; wr = wr->next) {
    result = Accept(qp, *wr);
    if (result != 0) *bad_wr = wr;
  }
  state.Progress(qp);
  // A message may have been waiting for this receive.
  if (FakeQp* peer = state.FindQp(qp.attributes.dest_qp_num)) state.Progress(*peer);
  return result;
}

int PollCq(ibv_cq* base, int wanted, ibv_wc* wc) {
  FakeCq& cq = Of(base);
  State& state = *cq.state;
  if (cq.size.load(std::memory_order_acquire) == 0) {
    state.RunHook(FakePoint::kAfterEmptyPoll, base);
    return 0;
  }
  const std::lock_guard lock(state.mutex);
  int taken = 0;
  for (; taken < wanted && !cq.entries.empty(); ++taken) {
    const Completion completion = cq.entries.front();
    cq.entries.pop_front();
    wc[taken] = completion.wc;
    FakeQp* qp = state.FindQp(completion.wc.qp_num);
    if (qp == nullptr || !completion.covers) continue;
    if (completion.receive) {
      --qp->recv_slots_used;
    } else {
      qp->sends_freed = *completion.covers;
    }
  }
  cq.size.store(cq.entries.size(), std::memory_order_release);
  return taken;
}

int ReqNotifyCq(ibv_cq* base, int solicited_only) {
  FakeCq& cq = Of(base);
  State& state = *cq.state;
  if (cq.channel == nullptr) return EINVAL;
  state.RunHook(FakePoint::kBeforeArm, base);
  {
    const std::lock_guard lock(state.mutex);
    const FakeArming wanted = solicited_only != 0 ? FakeArming::kSolicited : FakeArming::kAny;
    cq.seen.arming = std::max(cq.seen.arming, wanted);  // "any" is never downgraded
    ++cq.seen.arms;
    const bool tells = std::ranges::any_of(cq.entries, [&cq](const Completion& completion) {
      return cq.seen.arming == FakeArming::kAny || completion.solicited ||
             completion.wc.status != IBV_WC_SUCCESS;
    });
    if (state.signals_queued && tells) {
      cq.seen.arming = FakeArming::kNone;
      state.SendEvent(cq);
    }
  }
  state.RunHook(FakePoint::kAfterArm, base);
  return 0;
}

}  // namespace

void FillOps(ibv_context_ops& ops) {
  ops.post_send = PostSend;
  ops.post_recv = PostRecv;
  ops.poll_cq = PollCq;
  ops.req_notify_cq = ReqNotifyCq;
}

}  // namespace verbscope::fake
