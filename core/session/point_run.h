// One size of one repeat on one side: fresh endpoint, connection, warm-up, measured phase, results
// of both sides exchanged. The same steps in the same order on both sides; only the loop has a
// role.
#ifndef VERBSCOPE_CORE_SESSION_POINT_RUN_H_
#define VERBSCOPE_CORE_SESSION_POINT_RUN_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/causes/completion_failure.h"
#include "core/endpoint/endpoint.h"
#include "core/host/thread_usage.h"
#include "core/loops/ping_pong.h"
#include "core/plan/operation.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "core/session/monitor.h"
#include "core/session/side.h"
#include "transports/control/peer_link.h"

namespace verbscope {

class PointRun {
 public:
  PointRun(LoopRole role, SideState& side, const Plan& plan, PeerLink& link, Monitor& monitor,
           Deadline deadline)
      : role_(role),
        side_(side),
        plan_(plan),
        operation_(OperationOf(plan)),
        link_(link),
        monitor_(monitor),
        deadline_(deadline) {}

  // On success both results are filled. On failure own() still holds what was measured until then,
  // marked incomplete, if the measured phase had begun. `passed_bytes`: the largest size that this
  // session has run to its end.
  Status Execute(uint64_t size_bytes, uint32_t run, std::optional<uint64_t> passed_bytes);

  std::optional<Result> TakeOwn() { return std::move(own_); }
  std::optional<Result> TakePeer() { return std::move(peer_); }

 private:
  struct Phase {
    LoopLength length;
    bool measured = false;
  };

  Status Connect(uint64_t size_bytes);
  Status RunPhase(const Phase& phase);
  LoopOutcome RunLoop(const LoopLength& length, IntervalRecorder& recorder);
  // Whether this side times anything.
  bool measures() const {
    return role_ == LoopRole::kRequester || operation_.shape == LoopShape::kPingPong;
  }
  Status EndPhase(const LoopOutcome& outcome);
  Status ExchangeResults();
  Error FailureOf(const LoopOutcome& outcome);
  Error ExplainFailure(CompletionFailure failure, const LoopOutcome& outcome);
  Error StopError(StopReason reason);
  void FillResult(const LoopOutcome& outcome, IntervalRecorder& recorder, const ThreadUsage& usage);
  Point MakePoint() const;

  const LoopRole role_;
  SideState& side_;
  const Plan& plan_;
  const Operation operation_;
  PeerLink& link_;
  Monitor& monitor_;
  const Deadline deadline_;
  uint64_t size_bytes_ = 0;
  uint32_t run_ = 0;
  std::optional<uint64_t> passed_bytes_;
  uint64_t messages_before_ = 0;  // messages of finished phases on this connection
  EndpointInfo remote_;
  std::unique_ptr<Endpoint> endpoint_;
  std::optional<LatencyMetrics> warmup_;
  std::optional<Result> own_;
  std::optional<Result> peer_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_POINT_RUN_H_
