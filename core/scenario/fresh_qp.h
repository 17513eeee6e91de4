// One queue pair of one side with everything it needs: PD, buffer, MR, two CQs, and what is asked
// for beside them. Made by
// Stage::MakeQp, connected to the one that the other side makes at the same time, broken and reset
// as a scenario likes. No receive is posted unless the scenario posts it.
//
// Owned by a Stage; the session's thread. The objects are destroyed in reverse order.
#ifndef VERBSCOPE_CORE_SCENARIO_FRESH_QP_H_
#define VERBSCOPE_CORE_SCENARIO_FRESH_QP_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/causes/completion_failure.h"
#include "core/endpoint/connect.h"
#include "core/plan/plan.h"
#include "transports/device.h"

namespace verbscope {

class FreshQp;
class Stage;

struct FreshQpOptions {
  size_t buffer_bytes = 4096;
  uint32_t send_depth = 64;
  uint32_t receive_depth = 64;
  uint32_t max_send_sge = 1;
  uint32_t max_recv_sge = 1;
  uint32_t max_inline_bytes = 0;
  uint32_t cqe = 0;  // entries asked for of each CQ; 0: as many as its queue has requests
  bool signal_all = false;
  bool channel = false;          // one for both CQs, non-blocking
  bool shared_receives = false;  // the receives come from a shared receive queue
  bool foreign_region = false;   // the buffer is registered a second time, in another PD
  const FreshQp* share_cqs = nullptr;  // uses the CQs of this one, which outlives it
  // Masks of ibv_access_flags: of the memory, and what the QP lets the peer do.
  int memory_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  int qp_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  // Of this QP alone; absent: the plan's.
  std::optional<uint32_t> timeout_code = {};
  std::optional<uint32_t> retry_count = {};
  std::optional<uint32_t> rnr_retry = {};
  std::optional<uint32_t> rnr_timer_code = {};  // what this side asks of its peer
};

class FreshQp {
 public:
  // All objects made, the QP in INIT.
  static Expected<std::unique_ptr<FreshQp>> Create(Stage& stage, const FreshQpOptions& options);
  FreshQp(const FreshQp&) = delete;
  FreshQp& operator=(const FreshQp&) = delete;
  ~FreshQp() = default;

  // INIT to RTS with the peer's values; both sides must call it, and both are in RTS afterwards.
  // Receives may be posted before.
  Status Connect();
  // From any state to INIT: both queues empty, both CQs drained, another first PSN. Then Connect.
  Status Reset();

  // 0 or an errno, as ibv_post_recv. No SGE is given as a null list.
  int PostReceive(uint64_t wr_id, std::span<ibv_sge> sges = {});
  int PostSend(ibv_send_wr& request);
  // `length` bytes of the buffer from `offset`.
  ibv_sge Sge(size_t offset, size_t length) const;

  Expected<std::optional<ibv_wc>> AwaitSend(std::chrono::nanoseconds limit);
  Expected<std::optional<ibv_wc>> AwaitReceive(std::chrono::nanoseconds limit);
  // The state once it is `wanted`, or as it is after `limit`: a QP fails a little after its
  // completion.
  Expected<ibv_qp_state> AwaitState(ibv_qp_state wanted, std::chrono::nanoseconds limit);

  // The error of a run that broke with this completion. `op`: "SEND", "receive"; `number` from 1.
  Error Explain(const ibv_wc& completion, std::string op, uint64_t size_bytes, uint64_t number);

  ibv_qp* qp() const { return qp_.get(); }
  ibv_cq* send_cq() const {
    return options_.share_cqs != nullptr ? options_.share_cqs->send_cq() : send_cq_.get();
  }
  ibv_cq* receive_cq() const {
    return options_.share_cqs != nullptr ? options_.share_cqs->receive_cq() : receive_cq_.get();
  }
  ibv_pd* pd() const { return pd_.get(); }
  ibv_mr* region() const { return mr_.get(); }
  // Null unless asked for.
  ibv_comp_channel* channel() const { return channel_.get(); }
  ibv_srq* shared_queue() const { return srq_.get(); }
  ibv_mr* foreign_region() const { return foreign_mr_.get(); }
  uint32_t max_inline_bytes() const { return max_inline_bytes_; }  // at least what was asked
  std::span<std::byte> bytes() const { return buffer_->bytes(); }
  uint64_t address(size_t offset = 0) const {
    return reinterpret_cast<uintptr_t>(bytes().data()) + offset;
  }
  const EndpointInfo& remote() const { return remote_; }

  Status Close();  // the first failure

 private:
  FreshQp(Stage& stage, const FreshQpOptions& options, const Plan& plan)
      : stage_(stage), options_(options), plan_(plan) {}

  Status CreateObjects();
  Status CreateMemory();
  Status CreateCqs();
  Status CreateQp();
  EndpointInfo Info() const;

  Stage& stage_;
  const FreshQpOptions options_;
  const Plan plan_;  // with what the options replace

  // In order of creation; destroyed in reverse.
  Pd pd_;
  std::unique_ptr<Buffer> buffer_;
  Mr mr_;
  Pd foreign_pd_;
  Mr foreign_mr_;
  CompChannel channel_;
  Cq send_cq_;
  Cq receive_cq_;
  Srq srq_;
  Qp qp_;

  uint32_t max_inline_bytes_ = 0;
  uint32_t psn_ = 0;
  EndpointInfo remote_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_FRESH_QP_H_
