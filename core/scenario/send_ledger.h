// The sends of one side of an exchange that have no completion yet, and what is wrong with those
// that have one: status, order, opcode, or that one never comes.
#ifndef VERBSCOPE_CORE_SCENARIO_SEND_LEDGER_H_
#define VERBSCOPE_CORE_SCENARIO_SEND_LEDGER_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/base/error.h"
#include "core/scenario/finding.h"
#include "core/scenario/fresh_qp.h"

namespace verbscope {

class SendLedger {
 public:
  // `opcode` of the completions. The queue pair must outlive the ledger.
  SendLedger(FreshQp& qp, ibv_wc_opcode opcode, uint64_t size_bytes, const Route& route)
      : qp_(qp), opcode_(opcode), size_bytes_(size_bytes), route_(route) {}

  void Posted(uint64_t number) { pending_.push_back(number); }
  // Takes completions until at most `most_left` are due, and all that are there. One that does not
  // come within `limit` is a finding. Fails for a request that got no answer at all.
  Status Reap(std::chrono::nanoseconds limit, size_t most_left);

  const std::optional<Finding>& finding() const { return finding_; }

 private:
  Status Take(const ibv_wc& completion);

  FreshQp& qp_;
  const ibv_wc_opcode opcode_;
  const uint64_t size_bytes_;
  const Route route_;
  std::deque<uint64_t> pending_;  // in order of posting
  std::optional<Finding> finding_;
  bool out_of_order_ = false;  // that is the finding
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_SEND_LEDGER_H_
