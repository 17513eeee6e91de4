// One size of one repeat on one side: fresh endpoint, connection, warm-up, measured phase, results
// of both sides exchanged. The same steps in the same order on both sides; only the loop has a
// role.
#ifndef VERBSCOPE_CORE_SESSION_POINT_RUN_H_
#define VERBSCOPE_CORE_SESSION_POINT_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/endpoint/endpoint.h"
#include "core/loops/loop.h"
#include "core/plan/operation.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "core/session/cpu_metrics.h"
#include "core/session/measured_parts.h"
#include "core/session/monitor.h"
#include "core/session/phase.h"
#include "core/session/side.h"
#include "transports/control/peer_link.h"

namespace verbscope {

class PointRun {
 public:
  // Asked by the requester after each measured phase, with the results of both sides and the time
  // measured so far: for how many ns more to go on; 0: it is enough.
  using More = std::function<int64_t(std::span<const Result> results, int64_t measured_ns)>;

  PointRun(LoopRole role, SideState& side, const Plan& plan, PeerLink& link, Monitor& monitor,
           Deadline deadline)
      : role_(role),
        side_(side),
        plan_(plan),
        operation_(OperationOf(plan)),
        part_(PartOf(role, operation_, plan)),
        link_(link),
        monitor_(monitor),
        deadline_(deadline) {}

  // On success both results are filled. On failure own() still holds what was measured until then,
  // marked incomplete, if the measured phase had begun. `passed_bytes`: the largest size that this
  // session has run to its end.
  // `more` is used if plan.extend_to_ns is given; empty: never more.
  Status Execute(uint64_t size_bytes, uint32_t run, std::optional<uint64_t> passed_bytes,
                 const More& more = {});

  std::optional<Result> TakeOwn() { return std::move(own_); }
  std::optional<Result> TakePeer() { return std::move(peer_); }

 private:
  Status Connect(uint64_t size_bytes);
  Status RunPhase(LoopLength length, bool measured);
  bool WasDone(const LoopOutcome& outcome) const;  // stopped by the peer's end
  Status FinishTogether(Phase& phase, LoopOutcome& outcome);
  Status TakeLast(Phase& phase, uint64_t sent, LoopOutcome& outcome);
  // Of --verify: before and after a phase, on the sides where data lands.
  std::span<std::byte> Verified(std::span<std::byte> part) const;
  bool DataLandsHere() const;
  void PreparePayload(bool measured);
  Status CheckPayload(bool measured);
  Status ExchangeResults();
  Status Extend(const More& more);
  // `may` false: there were enough extensions.
  Expected<int64_t> AgreeOnMore(const More& more, bool may);
  Error FailureOf(const LoopOutcome& outcome);
  double SecondsOf(const LoopOutcome& outcome) const;  // from its first to its last reading
  CpuMetrics CloseAccount(const CpuAccount& account, const LoopOutcome& outcome) const;
  void FillResult(MeasuredPart part);
  Point MakePoint() const;

  const LoopRole role_;
  SideState& side_;
  const Plan& plan_;
  const Operation operation_;
  const Part part_;
  PeerLink& link_;
  Monitor& monitor_;
  const Deadline deadline_;
  uint64_t size_bytes_ = 0;
  uint32_t run_ = 0;
  std::optional<uint64_t> passed_bytes_;
  uint64_t messages_before_ = 0;  // messages of finished phases on this connection
  EndpointInfo remote_;
  std::unique_ptr<Endpoint> endpoint_;
  MeasuredParts measured_{operation_};
  std::optional<LatencyMetrics> warmup_;
  std::optional<BandwidthMetrics> warmup_bandwidth_;
  std::optional<Result> own_;
  std::optional<Result> peer_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_POINT_RUN_H_
