#include "core/scenario/send_ledger.h"

#include <algorithm>
#include <utility>

#include "core/scenario/message_check.h"

namespace verbscope {

Status SendLedger::Reap(std::chrono::nanoseconds limit, size_t most_left) {
  while (!pending_.empty()) {
    const bool due = pending_.size() > most_left;
    Expected<std::optional<ibv_wc>> next = qp_.AwaitSend(due ? limit : std::chrono::nanoseconds(0));
    if (!next) return Fail(std::move(next.error()));
    if (!*next) {
      // What came out of order did so because this one is lost.
      if (due && (!finding_ || out_of_order_)) {
        finding_ = route_.Lost(pending_.front(), "send completion", limit.count());
      }
      return {};
    }
    if (Status status = Take(**next); !status) return status;
  }
  return {};
}

Status SendLedger::Take(const ibv_wc& completion) {
  const uint64_t number = pending_.front();
  const auto note = [this](Finding finding) {
    if (!finding_) finding_ = std::move(finding);
  };
  // Silence says nothing about the device that was asked; any other status is its answer.
  if (completion.status == IBV_WC_RETRY_EXC_ERR) {
    const char* op = opcode_ == IBV_WC_SEND ? "SEND" : "RDMA WRITE";
    return Fail(qp_.Explain(completion, op, size_bytes_, number + 1));
  }
  if (completion.status != IBV_WC_SUCCESS) {
    note(route_.Bad(number, completion.status));
    pending_.clear();  // the rest is flushed
    return {};
  }
  const ExpectedSend expected{.number = number, .qp_num = qp_.qp()->qp_num, .opcode = opcode_};
  if (auto mismatch = CheckSend(completion, expected)) {
    if (!finding_) out_of_order_ = completion.wr_id != SendId(number);
    note(route_.Wrong(number, *mismatch));
  }
  const bool ours = completion.wr_id == SendId(NumberOfId(completion.wr_id));
  const auto found =
      ours ? std::ranges::find(pending_, NumberOfId(completion.wr_id)) : pending_.end();
  pending_.erase(found != pending_.end() ? found : pending_.begin());
  return {};
}

}  // namespace verbscope
