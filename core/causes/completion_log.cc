#include "core/causes/completion_log.h"

#include <algorithm>

namespace verbscope {

CompletionLog::QueuePair& CompletionLog::Find(uint32_t qp_num) {
  if (last_used_ < queue_pairs_.size() && queue_pairs_[last_used_].qp_num == qp_num) {
    return queue_pairs_[last_used_];
  }
  const auto found = std::find_if(queue_pairs_.begin(), queue_pairs_.end(),
                                  [&](const QueuePair& qp) { return qp.qp_num == qp_num; });
  last_used_ = static_cast<size_t>(found - queue_pairs_.begin());
  if (found == queue_pairs_.end()) queue_pairs_.emplace_back().qp_num = qp_num;
  return queue_pairs_[last_used_];
}

void CompletionLog::Add(const ibv_wc& completion) {
  QueuePair& qp = Find(completion.qp_num);
  if (completion.status == IBV_WC_SUCCESS) {
    ++qp.successes;
    return;
  }
  const bool flush = completion.status == IBV_WC_WR_FLUSH_ERR;
  if (flush) ++qp.flushes;
  // A real error replaces a flush that came before it: a receive queue may be flushed before the
  // send queue's error is polled.
  const bool better = !qp.first || (!flush && IsFlush(qp));
  if (!better) return;
  qp.arrival = arrivals_++;
  qp.first.emplace();
  qp.first->status = completion.status;
  qp.first->vendor_err = completion.vendor_err;
  qp.first->wr_id = completion.wr_id;
  qp.first->qp_num = completion.qp_num;
  qp.first->completions_before = qp.successes;
}

void CompletionLog::AddSuccesses(uint32_t qp_num, uint64_t count) {
  Find(qp_num).successes += count;
}

std::optional<CompletionFailure> CompletionLog::FirstFailure() const {
  std::vector<CompletionFailure> failures = Failures();
  if (failures.empty()) return std::nullopt;
  return failures.front();
}

std::vector<CompletionFailure> CompletionLog::Failures() const {
  std::vector<const QueuePair*> failed;
  for (const QueuePair& qp : queue_pairs_) {
    if (qp.first) failed.push_back(&qp);
  }
  std::sort(failed.begin(), failed.end(), [](const QueuePair* a, const QueuePair* b) {
    return IsFlush(*a) != IsFlush(*b) ? IsFlush(*b) : a->arrival < b->arrival;
  });
  std::vector<CompletionFailure> failures;
  failures.reserve(failed.size());
  for (const QueuePair* qp : failed) {
    CompletionFailure& failure = failures.emplace_back(*qp->first);
    failure.flushed = qp->flushes - (IsFlush(*qp) ? 1 : 0);
  }
  return failures;
}

uint64_t CompletionLog::flushed() const {
  uint64_t flushes = 0;
  for (const QueuePair& qp : queue_pairs_) flushes += qp.flushes;
  const std::optional<CompletionFailure> first = FirstFailure();
  return first && first->status == IBV_WC_WR_FLUSH_ERR ? flushes - 1 : flushes;
}

uint64_t CompletionLog::successes() const {
  uint64_t successes = 0;
  for (const QueuePair& qp : queue_pairs_) successes += qp.successes;
  return successes;
}

}  // namespace verbscope
