#include "core/scenario/cq_overrun_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/causes/completion_status.h"
#include "core/loops/wr_id.h"

namespace verbscope {
namespace {

// A queue pair may fail a little after the event.
constexpr std::chrono::nanoseconds kStateLimit = std::chrono::milliseconds(200);
constexpr std::chrono::nanoseconds kUsableLimit = std::chrono::milliseconds(500);

Expected<std::string> StateText(Stage& stage, ibv_qp* qp) {
  const Deadline deadline = Deadline::After(kStateLimit);
  for (;;) {
    Expected<ibv_qp_state> state = stage.device().QueryQpState(qp);
    if (!state) return Fail(std::move(state.error()));
    if (*state == IBV_QPS_ERR || deadline.Passed()) return QpStateName(*state);
    if (Status status = stage.Rest(std::chrono::milliseconds(2)); !status) {
      return Fail(std::move(status.error()));
    }
  }
}

void Count(const ibv_wc& wc, WrKind kind, uint32_t qp_num, Overrun& overrun) {
  OverrunMetrics& metrics = overrun.metrics;
  const uint64_t number = SequenceOf(wc.wr_id);
  const bool ours = KindOf(wc.wr_id) == kind && number < metrics.outstanding && wc.qp_num == qp_num;
  const bool too_many = metrics.delivered + metrics.flushed >= metrics.outstanding;
  if (!ours || too_many) {
    if (!overrun.strange.empty()) return;
    overrun.strange = fmt::format(
        "a completion of wr_id 0x{:016x} and qp_num 0x{:x} is one too many", wc.wr_id, wc.qp_num);
  } else if (wc.status == IBV_WC_SUCCESS) {
    overrun.oldest_in_order = overrun.oldest_in_order && number == metrics.delivered;
    ++metrics.delivered;
  } else {
    ++metrics.flushed;
  }
}

// One more request, once everything was polled. Of a queue pair in error it is flushed, which comes
// through the CQ as well.
Expected<std::optional<bool>> TryOneMore(Stage& stage, QpSet& set, uint64_t number) {
  const uint64_t wr_id = MakeWrId(WrKind::kSend, 0, number);
  if (set.PostSend(0, IBV_WR_RDMA_WRITE, wr_id) != 0) return std::nullopt;
  Expected<std::optional<ibv_wc>> wc = stage.Await(set.cq(), kUsableLimit);
  if (!wc) return Fail(std::move(wc.error()));
  return wc->has_value() && (*wc)->wr_id == wr_id;
}

}  // namespace

Expected<Overrun> TakeOverrun(Stage& stage, QpSet& set, bool receives, uint64_t outstanding) {
  Overrun overrun;
  OverrunMetrics& metrics = overrun.metrics;
  metrics.cqe = set.cqe();
  metrics.outstanding = metrics.most_unpolled = outstanding;
  Expected<std::optional<std::string>> event = stage.AwaitCqEvent(kEventLimit);
  if (!event) return Fail(std::move(event.error()));
  metrics.event = event->value_or("");
  if (Status status = stage.Rest(kSettle); !status) return Fail(std::move(status.error()));
  Expected<std::string> state = StateText(stage, set.qp());
  if (!state) return Fail(std::move(state.error()));
  metrics.qp_state = std::move(*state);
  // Twice as many as can come: a device that invents completions without end must not hold us.
  for (uint64_t taken = 0; taken < 2 * outstanding; ++taken) {
    Expected<std::optional<ibv_wc>> wc = stage.Await(set.cq(), kSettle);
    if (!wc) return Fail(std::move(wc.error()));
    if (!*wc) break;
    Count(**wc, receives ? WrKind::kRecv : WrKind::kSend, set.qp()->qp_num, overrun);
  }
  metrics.lost = outstanding - metrics.delivered - metrics.flushed;
  // A receive that is posted to a queue pair in error says nothing of the CQ: some devices never
  // look at it.
  if (receives || !overrun.strange.empty()) return overrun;
  Expected<std::optional<bool>> usable = TryOneMore(stage, set, outstanding);
  if (!usable) return Fail(std::move(usable.error()));
  metrics.cq_usable = *usable;
  return overrun;
}

Status TakeRest(Stage& stage, QpSet& set, OverrunMetrics& metrics) {
  while (metrics.delivered + metrics.flushed < metrics.outstanding) {
    Expected<std::optional<ibv_wc>> wc = stage.Await(set.cq(), kSettle);
    if (!wc) return Fail(std::move(wc.error()));
    if (!*wc) return {};
    ++((*wc)->status == IBV_WC_SUCCESS ? metrics.delivered : metrics.flushed);
  }
  return {};
}

std::string OverrunText(const Overrun& overrun) {
  if (!overrun.strange.empty()) return overrun.strange;
  const OverrunMetrics& metrics = overrun.metrics;
  std::string text = metrics.event.empty() ? "no event" : "CQ_ERR";
  if (metrics.delivered == metrics.outstanding) {
    text += ", all completions delivered";
  } else if (metrics.delivered == 0) {
    text += ", no completion delivered";
  } else {
    text += overrun.oldest_in_order ? ", the oldest completions delivered in order"
                                    : ", not the oldest completions delivered";
    text += metrics.lost == 0      ? ", the rest flushed"
            : metrics.flushed == 0 ? ", the rest lost"
                                   : ", some flushed and some lost";
  }
  text += ", QP in " + metrics.qp_state;
  if (metrics.cq_usable) text += *metrics.cq_usable ? ", the CQ goes on" : ", the CQ is dead";
  return text;
}

std::string NumbersText(const OverrunMetrics& metrics) {
  std::string text = fmt::format("{} of {} delivered, {} lost", metrics.delivered,
                                 metrics.outstanding, metrics.lost);
  if (metrics.flushed > 0) text += fmt::format(", {} flushed", metrics.flushed);
  return text + fmt::format(", CQ of {} entries", metrics.cqe);
}

Expected<Paused> WriteWithPauses(Stage& stage, QpSet& set, uint64_t messages) {
  Paused paused;
  OverrunMetrics& metrics = paused.metrics;
  metrics.cqe = set.cqe();
  metrics.outstanding = messages;
  uint64_t posted = 0;
  for (uint64_t done = 0; done < messages && paused.wrong.empty(); ++done) {
    for (; posted < messages && posted - done < metrics.cqe; ++posted) {
      const uint64_t wr_id = MakeWrId(WrKind::kSend, 0, posted);
      if (const int refused = set.PostSend(0, IBV_WR_RDMA_WRITE, wr_id); refused != 0) {
        return Fail(CallError(ErrorClass::kRun, "ibv_post_send", fmt::format("message {}", posted),
                              refused));
      }
    }
    metrics.most_unpolled = std::max(metrics.most_unpolled, posted - done);
    if (posted < messages) ++paused.pauses;
    Expected<std::optional<ibv_wc>> wc = stage.Await(set.cq(), stage.CompletionLimit());
    if (!wc) return Fail(std::move(wc.error()));
    if (!*wc) {
      paused.wrong = fmt::format("message {}: no send completion", done);
    } else if ((*wc)->status == IBV_WC_RETRY_EXC_ERR) {
      // The path, and not the queue: nothing can be said of completions.
      return Fail(set.Explain(**wc, 0, "WRITE", done + 1));
    } else if ((*wc)->status != IBV_WC_SUCCESS) {
      paused.wrong = fmt::format("message {}: status is {}", done, NameOf((*wc)->status));
      ++metrics.flushed;
    } else if ((*wc)->wr_id != MakeWrId(WrKind::kSend, 0, done)) {
      paused.wrong = fmt::format("message {}: wr_id is 0x{:016x}", done, (*wc)->wr_id);
      ++metrics.delivered;
    } else {
      ++metrics.delivered;
    }
  }
  metrics.outstanding = posted;
  if (!paused.wrong.empty()) {
    if (Status status = TakeRest(stage, set, metrics); !status) return Fail(status.error());
  }
  metrics.lost = metrics.outstanding - metrics.delivered - metrics.flushed;
  Expected<std::optional<std::string>> event = stage.AwaitCqEvent(kSettle);
  if (!event) return Fail(std::move(event.error()));
  metrics.event = event->value_or("");
  if (paused.wrong.empty() && !metrics.event.empty()) paused.wrong = "event " + metrics.event;
  Expected<ibv_qp_state> state = stage.device().QueryQpState(set.qp());
  if (!state) return Fail(std::move(state.error()));
  metrics.qp_state = QpStateName(*state);
  return paused;
}

void KeepOverrun(Stage& stage, std::string op, uint32_t qps, std::string variant,
                 OverrunMetrics metrics) {
  Result result;
  result.point.op = std::move(op);
  result.point.size_bytes = stage.size_bytes();
  result.point.qps = qps;
  result.point.cqs = 1;
  result.point.wait = ToText(WaitMode{});
  result.point.variant = std::move(variant);
  result.side = stage.requester() ? "requester" : "responder";
  result.metrics.overrun = std::move(metrics);
  stage.Keep(std::move(result));
}

}  // namespace verbscope
