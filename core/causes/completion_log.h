// Finds the first real error among many completions. When a queue pair fails, everything posted on
// it is flushed: one completion tells the cause and up to thousands say only that there was one.
// The log keeps the first error that is not a flush, per queue pair, and counts the flushes.
//
// One thread feeds it, in the order in which completions were polled; it is read after that.
// Feeding allocates only for the first completion of a queue pair.
//
//   CompletionLog log;
//   log.Add(wc);                                   // or AddSuccesses(qp, n) from a counting loop
//   if (auto failure = log.FirstFailure()) {
//     failure->op = "SEND"; …                      // from our own table, by failure->wr_id
//     return Fail(ExplainCompletion(*failure));
//   }
#ifndef VERBSCOPE_CORE_CAUSES_COMPLETION_LOG_H_
#define VERBSCOPE_CORE_CAUSES_COMPLETION_LOG_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/causes/completion_failure.h"

namespace verbscope {

class CompletionLog {
 public:
  // Reads wr_id, status, qp_num and vendor_err only; the rest is not valid in a failed completion.
  void Add(const ibv_wc& completion);
  // Good completions that were only counted, all before the next Add of this queue pair.
  void AddSuccesses(uint32_t qp_num, uint64_t count);

  // The first real error of all queue pairs. When there were only flushes, the first flush: its
  // status is WR_FLUSH_ERR, and the cause is elsewhere. Nothing when every completion was good.
  // Members that a completion does not tell are left at their defaults.
  std::optional<CompletionFailure> FirstFailure() const;
  // The same per queue pair: the first of each failed one, real errors first, in order of arrival.
  std::vector<CompletionFailure> Failures() const;

  uint64_t flushed() const;    // of all queue pairs, without what FirstFailure returned
  uint64_t successes() const;  // of all queue pairs

 private:
  struct QueuePair {
    uint32_t qp_num = 0;
    uint64_t successes = 0;
    uint64_t flushes = 0;
    uint64_t arrival = 0;  // of `first` among all failures of the log
    std::optional<CompletionFailure> first;
  };

  QueuePair& Find(uint32_t qp_num);
  static bool IsFlush(const QueuePair& qp) { return qp.first->status == IBV_WC_WR_FLUSH_ERR; }

  std::vector<QueuePair> queue_pairs_;  // few hundred at most: searched from the last one used
  size_t last_used_ = 0;
  uint64_t arrivals_ = 0;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CAUSES_COMPLETION_LOG_H_
