// Posting, polling and arming: the fast path of the soft device. Nothing here allocates, formats or
// looks at an option; what an option changes (faults, capture, event timing) hangs behind pointers
// that are null or plain in normal use, or has a function of its own.
#include <algorithm>
#include <cerrno>

#include "transports/soft/device/core.h"
#include "transports/soft/device/verbs_ops.h"

namespace verbscope::soft {
namespace {

// Empty polls between two looks at the clock, about five microseconds.
constexpr uint32_t kEmptyPollsPerTick = 1024;

// Lock held.
int PostLocked(SoftQp& qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  SoftCore& core = *qp.core;
  const int result = qp.pair->PostSend(wr, bad);
  // The message goes first, then what is owed to the peer.
  if (qp.pair->TransmitRequests()) [[unlikely]]
    core.engine().Touch(*qp.pair);
  core.Service();
  return result;
}

int PostSend(ibv_qp* base, ibv_send_wr* wr, ibv_send_wr** bad) {
  SoftQp& qp = Of(base);
  SoftCore& core = *qp.core;
  core.lock().Acquire();
  const int result = PostLocked(qp, wr, bad);
  core.lock().ReleaseAndGiveWay();
  if (result != 0) [[unlikely]]
    errno = result;
  return result;
}

int PostReceive(ibv_qp* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  SoftQp& qp = Of(base);
  SoftCore& core = *qp.core;
  core.lock().Acquire();
  const int result = qp.pair->PostReceive(wr, bad);
  core.ServiceOverruns();
  core.lock().ReleaseAndGiveWay();
  if (result != 0) [[unlikely]]
    errno = result;
  return result;
}

int PostSrqReceive(ibv_srq* base, ibv_recv_wr* wr, ibv_recv_wr** bad) {
  SoftSrq& srq = Of(base);
  SpinLockHolder hold(srq.core->lock());
  ibv_recv_wr* const first = wr;
  for (; wr != nullptr; wr = wr->next) {
    if (const int result = srq.queue.Post(*wr); result != 0) {
      *bad = srq.core->Has(Defect::kWrongBadWr) ? first : wr;
      errno = result;
      return result;
    }
  }
  return 0;
}

int PollCq(ibv_cq* base, int wanted, ibv_wc* wc) {
  SoftCq& cq = Of(base);
  SoftCore& core = *cq.core;
  if (!cq.queue.Looks() && !core.NeedsService()) [[likely]] {
    const uint32_t empty = cq.empty_polls.load(std::memory_order_relaxed) + 1;
    cq.empty_polls.store(empty, std::memory_order_relaxed);
    if (empty % kEmptyPollsPerTick == 0) [[unlikely]]
      core.IdlePoll();
    return 0;
  }
  if (wanted <= 0) return 0;
  core.lock().Acquire();
  core.CountPoll();
  const bool owed = core.attention();
  const size_t delivered = core.DeliverUntil(cq.queue, static_cast<uint32_t>(wanted));
  const int taken = cq.queue.Poll(wanted, wc);
  if (taken == 0 || owed) {
    core.Service();
  } else if (delivered > 0) {
    // The program has a completion to look at; its answer may leave first, the ACK with it.
    core.SetAttention();
  }
  core.lock().ReleaseAndGiveWay();
  return taken;
}

// EventTiming::between_poll_and_arm: while the CQ is not armed the newest completion stays hidden,
// so the last poll before an arm never finds it. What raised an event, or was there when the CQ was
// armed, is shown.
int PollCqHoldingBack(ibv_cq* base, int wanted, ibv_wc* wc) {
  SoftCq& cq = Of(base);
  SoftCore& core = *cq.core;
  core.CountActivity();
  const SpinLockHolder hold(core.lock());
  core.Drive(NowNs());
  const uint32_t stored = cq.queue.size();
  const bool hides = cq.channel != nullptr && cq.queue.armed() == CompletionQueue::Armed::kNo;
  uint32_t open = stored;
  if (hides && stored > 0) open = std::clamp(cq.shown, stored - 1, stored);
  const int taken = cq.queue.Poll(std::min(wanted, static_cast<int>(open)), wc);
  cq.shown -= std::min(cq.shown, static_cast<uint32_t>(taken));
  return taken;
}

int RequestNotify(ibv_cq* base, int solicited_only) {
  SoftCq& cq = Of(base);
  if (cq.channel == nullptr) {
    errno = EINVAL;
    return EINVAL;
  }
  SoftCore& core = *cq.core;
  SpinLockHolder hold(core.lock());
  cq.queue.Arm(solicited_only != 0 && !core.Has(Defect::kSolicitedWakesNot));
  cq.shown = cq.queue.size();
  core.ArmPeers(cq);
  core.AskHelperToWatch();
  // What arrived before the peers knew has to raise its event from here.
  if (core.NeedsService()) core.Drive(NowNs());
  return 0;
}

}  // namespace

int PostWhole(SoftQp& qp) {
  SpinLockHolder hold(qp.core->lock());
  if (qp.built > qp.pair->free_send_slots()) return ENOMEM;
  ibv_send_wr* bad = nullptr;
  return PostLocked(qp, qp.building.data(), &bad);
}

void FillOps(ibv_context_ops& ops, const EventTiming& timing) {
  ops.post_send = PostSend;
  ops.post_recv = PostReceive;
  ops.post_srq_recv = PostSrqReceive;
  ops.poll_cq = timing.between_poll_and_arm ? PollCqHoldingBack : PollCq;
  ops.req_notify_cq = RequestNotify;
}

}  // namespace verbscope::soft
