// Making, destroying and changing: CQs, QPs, and the three steps of a QP from RESET to RTS. The
// timed call is the Device's, a thin wrapper of the verb.
#include <string>
#include <utility>

#include "core/cost/verb_rows.h"
#include "core/endpoint/connect.h"
#include "core/plan/plan.h"

namespace verbscope {
namespace {

constexpr uint32_t kDepth = 64;

// Both rows of one kind of object. `make` returns an Expected<Object>, Object has Close().
template <class Object, class Make>
Status MeasureLife(CostMeter& meter, const std::string& kind, Make make) {
  Expected<Object> made{Object()};
  Status closed;
  const auto create = [&]() -> Status {
    made = make();
    return made ? Status() : Fail(made.error());
  };
  const auto destroyed = [&]() -> Expected<bool> {
    if (!closed) return Fail(closed.error());
    return true;
  };
  Status status = meter.Measure(
      CostRow{.point = CostPoint("create_" + kind)}, [] { return Status(); },
      [&] { made = make(); },
      [&]() -> Expected<bool> {
        if (!made) return Fail(made.error());
        closed = made->Close();
        return destroyed();
      });
  if (!status) return status;
  return meter.Measure(
      CostRow{.point = CostPoint("destroy_" + kind)}, create, [&] { closed = made->Close(); },
      destroyed);
}

struct QpParts {
  Pd pd;
  Cq cq;
};

Expected<QpParts> MakeParts(Device& device) {
  QpParts parts;
  Expected<Pd> pd = device.AllocatePd();
  if (!pd) return Fail(std::move(pd.error()));
  parts.pd = std::move(*pd);
  Expected<Cq> cq = device.CreateCq({.cqe = 2 * kDepth});
  if (!cq) return Fail(std::move(cq.error()));
  parts.cq = std::move(*cq);
  return parts;
}

Expected<Qp> MakeQp(Device& device, const QpParts& parts) {
  Expected<CreatedQp> qp = device.CreateQp({.pd = parts.pd.get(),
                                            .send_cq = parts.cq.get(),
                                            .recv_cq = parts.cq.get(),
                                            .max_send_wr = kDepth,
                                            .max_recv_wr = kDepth});
  if (!qp) return Fail(std::move(qp.error()));
  return std::move(qp->qp);
}

// The way of a QP whose peer is in this process, as far as a row wants it.
class QpWay {
 public:
  QpWay(const CostStage& stage, ibv_qp* qp, ibv_qp* peer)
      : stage_(stage), qp_(qp), peer_(InfoOf(stage.device, peer, /*psn=*/1, stage.path)) {}

  Status Reset() {
    ibv_qp_attr attributes = {};
    attributes.qp_state = IBV_QPS_RESET;
    return stage_.device.ModifyQp(qp_, attributes, IBV_QP_STATE, "any state to RESET");
  }
  Status Init() { return ToInit(stage_.device, qp_, plan_, stage_.path, IBV_ACCESS_REMOTE_WRITE); }
  Status AcceptPeer() { return stage_.device.AcceptPeerBlob(qp_, peer_.qps.front().blob); }
  Status Receive() {
    return ToReadyToReceive(stage_.device, qp_, plan_, stage_.path, peer_, peer_.qps.front());
  }
  Status Send() { return ToReadyToSend(stage_.device, qp_, /*own_psn=*/2, plan_, peer_); }

 private:
  const CostStage& stage_;
  ibv_qp* const qp_;
  const EndpointInfo peer_;
  const Plan plan_;
};

}  // namespace

Status MeasureQueuePair(CostMeter& meter, const CostStage& stage) {
  Expected<QpParts> parts = MakeParts(stage.device);
  if (!parts) return Fail(std::move(parts.error()));
  return MeasureLife<Qp>(meter, "qp", [&] { return MakeQp(stage.device, *parts); });
}

Status MeasureCq(CostMeter& meter, const CostStage& stage) {
  return MeasureLife<Cq>(meter, "cq",
                         [&stage] { return stage.device.CreateCq({.cqe = 2 * kDepth}); });
}

Status MeasureModifyQp(CostMeter& meter, const CostStage& stage) {
  Expected<QpParts> parts = MakeParts(stage.device);
  if (!parts) return Fail(std::move(parts.error()));
  Expected<Qp> qp = MakeQp(stage.device, *parts);
  if (!qp) return Fail(std::move(qp.error()));
  Expected<Qp> peer = MakeQp(stage.device, *parts);
  if (!peer) return Fail(std::move(peer.error()));
  QpWay way(stage, qp->get(), peer->get());
  Status changed;
  const auto finish = [&]() -> Expected<bool> {
    if (!changed) return Fail(changed.error());
    return true;
  };
  const auto row = [](const char* step) {
    CostRow made{.point = CostPoint("modify_qp")};
    made.point.variant = step;
    return made;
  };
  const auto to_reset = [&] { return way.Reset(); };
  const auto to_init = [&] {
    Status status = way.Reset();
    if (status) status = way.Init();
    if (status) status = way.AcceptPeer();
    return status;
  };
  const auto to_receive = [&] {
    Status status = to_init();
    if (status) status = way.Receive();
    return status;
  };
  Status status = meter.Measure(
      row("RESET to INIT"), to_reset, [&] { changed = way.Init(); }, finish);
  if (!status) return status;
  status = meter.Measure(
      row("INIT to RTR"), to_init, [&] { changed = way.Receive(); }, finish);
  if (!status) return status;
  status = meter.Measure(
      row("RTR to RTS"), to_receive, [&] { changed = way.Send(); }, finish);
  return status;
}

}  // namespace verbscope
