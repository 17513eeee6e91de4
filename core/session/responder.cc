#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "core/host/affinity.h"
#include "core/plan/operation.h"
#include "core/record/outcome.h"
#include "core/record/record_json.h"
#include "core/selection/gid_pair.h"
#include "core/selection/path_mtu.h"
#include "core/session/messages.h"
#include "core/session/phase.h"
#include "core/session/run_points.h"
#include "core/session/run_scenarios.h"
#include "core/session/session.h"
#include "core/session/side.h"
#include "core/session/steps.h"
#include "core/session/verdict.h"
#include "transports/control/peer_link.h"

namespace verbscope {
namespace {

// The first frames of a session come from a client that has only to read its own options.
constexpr std::chrono::seconds kFirstFrameTime(30);

// Commands of steps poll whatever this server's own way of waiting is; others may not be able to
// wait so.
Status CheckOwnWait(const Plan& plan, WaitMode wait) {
  if (FindOperation(plan.command) == nullptr) return {};
  Status status = CheckWait(plan, /*requester=*/false, wait);
  if (status) return status;
  Error& error = status.error();
  error.error_class = ErrorClass::kSetup;
  error.message.insert(0, "plan refused: ");
  error.cause = "the server was started with this way of waiting";
  error.next_step += "; or ask this side for another one with --peer wait=busy";
  return status;
}

// Bounds the plan by this side's limits and agrees to it.
Expected<SideState> AgreeOnPlan(PeerLink& link, const SessionContext& context,
                                const ResponderOptions& options, Record& record) {
  Expected<nlohmann::json> frame = ReceiveFrame(link, "plan", Deadline::After(kFirstFrameTime));
  if (!frame) return Fail(std::move(frame.error()));
  Expected<PlanMessage> message = PlanMessageFromJson(*frame);
  if (!message) return Fail(std::move(message.error()));
  record.command = message->plan.command;
  record.plan = message->plan;
  if (!options.allow_peer_settings && message->peer != PeerSettings{}) {
    Error error;
    error.error_class = ErrorClass::kSetup;
    error.message = "this server does not let clients choose its settings (--peer)";
    error.next_step = "leave --peer out";
    return Fail(std::move(error));
  }
  const LocalSettings settings = Apply(options.settings, message->peer);
  // Before the device is even opened: a plan that asks too much costs this host nothing.
  Expected<Plan> bounded = Bound(message->plan, options.limits);
  if (!bounded) return Fail(std::move(bounded.error()));
  if (Status status = CheckOwnWait(*bounded, settings.wait); !status) {
    return Fail(std::move(status.error()));
  }
  Expected<SideState> side =
      OpenSide(context, settings, options.control_path, "responder", record.local);
  if (!side) return Fail(std::move(side.error()));
  ServerLimits limits = options.limits;
  limits.max_message_bytes = std::min(limits.max_message_bytes, side->port.max_message_bytes);
  limits.max_qp_wr = std::min(limits.max_qp_wr, side->device->info().limits.max_qp_wr);
  bounded = Bound(message->plan, limits);
  if (!bounded) return Fail(std::move(bounded.error()));
  record.plan = *bounded;

  const PlanOkMessage agreed{.plan = *bounded,
                             .port = side->port,
                             .gid_index = settings.gid_index,
                             .netdev = options.control_path.netdev};
  const Deadline deadline = Deadline::After(kStepTime);
  if (Status status = SendFrame(link, ToJson(agreed), deadline); !status) {
    return Fail(std::move(status.error()));
  }
  return side;
}

// The client chose the pair; this side checks it again with its own table, since the client's view
// may be stale or hostile.
Status AgreeOnPath(PeerLink& link, const ResponderOptions& options, Deadline deadline,
                   SideState& side, Record& record) {
  Expected<nlohmann::json> frame = ReceiveFrame(link, "setup", deadline);
  if (!frame) return Fail(std::move(frame.error()));
  Expected<SetupMessage> setup = SetupMessageFromJson(*frame);
  if (!setup) return Fail(std::move(setup.error()));
  Expected<GidPair> pair = ChooseGidPair(side.port, setup->port, setup->peer_gid.index,
                                         setup->gid.index, options.control_path);
  if (!pair) return Fail(std::move(pair.error()));
  Expected<uint32_t> mtu = ChoosePathMtu(side.port.active_mtu_bytes, setup->port.active_mtu_bytes,
                                         setup->path_mtu_bytes);
  if (!mtu) return Fail(std::move(mtu.error()));
  side.gid = pair->local;
  side.global_route = pair->needs_grh;
  side.path_mtu_bytes = *mtu;
  side.peer_wait = setup->wait;
  side.same_host = options.control_path.same_host() || record.loopback;
  ShareCpus(side, side.same_host, ResponderSleeps(*record.plan, *side.device));
  record.path_mtu_bytes = *mtu;
  DescribePath(side);
  record.local = side.record;
  record.remote = std::move(setup->side);
  const SetupMessage confirmed{.port = side.port,
                               .gid = pair->local,
                               .peer_gid = pair->remote,
                               .path_mtu_bytes = *mtu,
                               .wait = side.settings.wait,
                               .side = side.record};
  return SendFrame(link, ToJson(confirmed, "setup_ok"), deadline);
}

Status Run(PeerLink& link, const SessionContext& context, const ResponderOptions& options,
           Farewell& farewell, Record& record) {
  Expected<SideState> side = AgreeOnPlan(link, context, options, record);
  if (!side) return Fail(std::move(side.error()));
  // One client must not hold the server for ever, whatever deadline it names.
  constexpr int64_t kGraceNs = 60'000'000'000;
  const Deadline deadline = Deadline::After(std::chrono::nanoseconds(
      std::min(EffectiveDeadlineNs(*record.plan), options.limits.max_run_ns + kGraceNs)));
  if (Status status = AgreeOnPath(link, options, deadline, *side, record); !status) return status;
  const Plan plan = *record.plan;
  if (Status status =
          RunWork(LoopRole::kResponder, *side, plan, link, context, deadline, farewell, record);
      !status) {
    return status;
  }
  Expected<nlohmann::json> verdict = ReceiveFrame(link, "verdict", deadline);
  if (!verdict) return Fail(std::move(verdict.error()));
  SetVerdict(record);
  // Assertions are the client's: it judged them by its policy, and its code counts for both sides.
  // What failed here is not made good there.
  if (Status status = TakeGates(*verdict, record); !status) return status;
  const Expected<uint64_t> code = Unsigned(*verdict, "exit_code", 0, 6);
  if (!code) return Fail(code.error());
  if (record.verdict == "pass" && *code == 4) SetOutcome("inconclusive", record);
  if (record.verdict != "error" && *code == 3) SetOutcome("fail", record);
  if (Status status = SendFrame(link, VerdictMessage(record), deadline); !status) return status;
  link.Goodbye(Deadline::After(std::chrono::seconds(1)));
  return {};
}

}  // namespace

void RunResponder(Connection connection, const SessionContext& context,
                  const ResponderOptions& options, Record& record) {
  const AffinityScope affinity;  // pinning is for this session only
  Expected<std::unique_ptr<PeerLink>> link =
      PeerLink::Start(std::move(connection), {.interrupt_fd = context.interrupt.fd()});
  if (!link) {
    record.error = std::move(link.error());
    SetVerdict(record);
    return;
  }
  Farewell farewell(**link);
  if (Status status = Run(**link, context, options, farewell, record); !status) {
    record.error =
        farewell.Conclude(OwnInterruptFirst(std::move(status.error()), context.interrupt.raised()));
  } else {
    return;  // the client's verdict is in the record
  }
  SetVerdict(record);
}

}  // namespace verbscope
