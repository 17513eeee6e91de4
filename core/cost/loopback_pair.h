// Two RC QPs of one device, connected to each other, so that calls can be measured without a peer.
// The first one sends: RDMA WRITEs into this process's own buffer, which need no receives. Both
// ends take the same GID.
//
// Owned by a group of rows; the measuring thread. Destroyed in reverse order.
#ifndef VERBSCOPE_CORE_COST_LOOPBACK_PAIR_H_
#define VERBSCOPE_CORE_COST_LOOPBACK_PAIR_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/cost/cost_limits.h"
#include "core/endpoint/connect.h"
#include "transports/device.h"

namespace verbscope {

// What every group of rows needs.
struct CostStage {
  Device& device;
  PathOptions path;
  uint32_t inline_bytes = 0;  // the device's limit
};

struct PairOptions {
  uint32_t send_depth = 128;
  uint32_t inline_bytes = 0;
  bool channel = false;   // the send CQ raises events
  bool extended = false;  // with ibv_wr_* and ibv_start_poll, where the device has them
};

class LoopbackPair {
 public:
  static constexpr size_t kBufferBytes = 128 * 1024;   // half of it is written from, half to
  static constexpr std::chrono::seconds kPatience{5};  // for what takes microseconds

  static Expected<std::unique_ptr<LoopbackPair>> Create(const CostStage& stage,
                                                        const CostLimits& limits,
                                                        const PairOptions& options);
  LoopbackPair(const LoopbackPair&) = delete;
  LoopbackPair& operator=(const LoopbackPair&) = delete;
  ~LoopbackPair() = default;

  ibv_qp* qp() const { return sender_.get(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  // Never has a completion. On a software device whose polls do its work, polling it lets requests
  // proceed and takes no completion away.
  ibv_cq* idle_cq() const { return idle_cq_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }
  uint64_t local_address() const;
  uint64_t remote_address() const;
  uint32_t lkey() const { return mr_->lkey; }
  uint32_t rkey() const { return mr_->rkey; }

  // `count` WRITEs of `bytes` as one list; the last one is signalled, or all are. Valid until the
  // next call.
  ibv_send_wr* Writes(uint32_t count, uint32_t bytes, unsigned flags, bool signal_all);

  // The result of a post as an error.
  Status Posted(int result, const char* call) const;
  // Takes `completions` from the send CQ; kRun if one failed or does not come.
  Status Drain(uint32_t completions);
  // Spins for `time`, working for the device.
  void Settle(std::chrono::nanoseconds time) const;
  // kRun for a completion that is no success.
  Status Judge(const ibv_wc& completion) const;

 private:
  LoopbackPair(const CostStage& stage, const CostLimits& limits)
      : device_(stage.device), path_(stage.path), limits_(limits) {}

  Status CreateObjects(const PairOptions& options);
  Status Connect();

  Device& device_;
  const PathOptions path_;
  const CostLimits& limits_;

  // In order of creation; destroyed in reverse.
  Pd pd_;
  std::unique_ptr<Buffer> buffer_;
  Mr mr_;
  CompChannel channel_;
  Cq send_cq_;
  Cq idle_cq_;
  Qp sender_;
  Qp receiver_;

  std::vector<ibv_sge> sges_;
  std::vector<ibv_send_wr> requests_;
};

// What one end of a pair tells the other, of a QP of this process.
EndpointInfo InfoOf(Device& device, ibv_qp* qp, uint32_t psn, const PathOptions& path);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COST_LOOPBACK_PAIR_H_
