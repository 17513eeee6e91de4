#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "core/gates/figures.h"
#include "core/host/affinity.h"
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

// Whether `agreed` differs from `asked` only in what a server may lower.
bool IsLoweredFrom(Plan agreed, const Plan& asked) {
  if (agreed.tx_depth > asked.tx_depth || agreed.rx_depth > asked.rx_depth) return false;
  agreed.tx_depth = asked.tx_depth;
  agreed.rx_depth = asked.rx_depth;
  agreed.post_list = asked.post_list;
  agreed.signal_every = asked.signal_every;
  agreed.interval_ns = asked.interval_ns;
  agreed.deadline_ns = asked.deadline_ns;
  agreed.changes = asked.changes;
  return agreed == asked;
}

// Sends the plan; what comes back is the plan that runs, and the server's port.
Expected<PlanOkMessage> AgreeOnPlan(PeerLink& link, const RequesterOptions& options,
                                    Deadline deadline, Record& record) {
  const PlanMessage message{.plan = options.plan, .peer = options.peer};
  if (Status status = SendFrame(link, ToJson(message), deadline); !status) {
    return Fail(std::move(status.error()));
  }
  Expected<nlohmann::json> frame = ReceiveFrame(link, "plan_ok", deadline);
  if (!frame) return Fail(std::move(frame.error()));
  Expected<PlanOkMessage> agreed = PlanOkMessageFromJson(*frame);
  if (!agreed) return agreed;
  if (!IsLoweredFrom(agreed->plan, options.plan)) {
    Error error;
    error.error_class = ErrorClass::kRun;
    error.message = "the server agreed to another plan than the one it was asked for";
    error.cause = "two versions that do not understand each other";
    error.next_step = "run the same verbscope version on both hosts";
    return Fail(std::move(error));
  }
  record.plan = agreed->plan;
  return agreed;
}

// Chooses the GID pair and the path MTU from both ports, and has the server confirm.
Status AgreeOnPath(PeerLink& link, const RequesterOptions& options, const SessionContext& context,
                   const PlanOkMessage& agreed, Deadline deadline, SideState& side,
                   Record& record) {
  Expected<GidPair> pair = ChooseGidPair(side.port, agreed.port, side.settings.gid_index,
                                         agreed.gid_index, options.control_path);
  if (!pair) return Fail(std::move(pair.error()));
  if (!pair->notice.empty()) context.notice(pair->notice);
  Expected<uint32_t> mtu = ChoosePathMtu(side.port.active_mtu_bytes, agreed.port.active_mtu_bytes,
                                         agreed.plan.mtu_bytes);
  if (!mtu) return Fail(std::move(mtu.error()));
  side.gid = pair->local;
  side.global_route = pair->needs_grh;
  side.path_mtu_bytes = *mtu;
  record.path_mtu_bytes = *mtu;
  DescribePath(side);
  record.local = side.record;

  const SetupMessage setup{.port = side.port,
                           .gid = pair->local,
                           .peer_gid = pair->remote,
                           .path_mtu_bytes = *mtu,
                           .wait = side.settings.wait,
                           .side = side.record};
  if (Status status = SendFrame(link, ToJson(setup, "setup"), deadline); !status) return status;
  Expected<nlohmann::json> frame = ReceiveFrame(link, "setup_ok", deadline);
  if (!frame) return Fail(std::move(frame.error()));
  Expected<SetupMessage> confirmed = SetupMessageFromJson(*frame);
  if (!confirmed) return Fail(std::move(confirmed.error()));
  side.peer_wait = confirmed->wait;
  side.same_host = record.loopback;
  if (const std::string notice =
          ShareCpus(side, side.same_host, ResponderSleeps(agreed.plan, *side.device));
      !notice.empty()) {
    context.notice(notice);
  }
  record.remote = std::move(confirmed->side);
  return {};
}

// A verdict that assertions were not decided on, but counted, is said to be one.
void NoteUndecided(OnInconclusive policy, const SessionContext& context, const Record& record) {
  if (policy != OnInconclusive::kFail && policy != OnInconclusive::kPass) return;
  const auto undecided = std::ranges::count_if(
      record.gates, [](const GateRow& gate) { return gate.outcome.status == "inconclusive"; });
  if (undecided == 0) return;
  context.notice(fmt::format("{} assertion{} could not be decided and count{} as {}, as asked",
                             undecided, undecided == 1 ? "" : "s", undecided == 1 ? "s" : "",
                             policy == OnInconclusive::kFail ? "failed" : "passed"));
}

// How often and how long points were measured on.
struct Extended {
  uint64_t times = 0;
  int64_t total_ns = 0;
};

void NoteExtended(const Extended& extended, const SessionContext& context) {
  if (extended.times == 0) return;
  context.notice(fmt::format(
      "measured on {} time{}, for {:.3g} s in all, until the assertions were decided or "
      "--max-duration or the deadline was reached; the results are of everything measured",
      extended.times, extended.times == 1 ? "" : "s",
      static_cast<double>(extended.total_ns) * 1e-9));
}

// Bounds of percentiles that take every sample as independent are said to.
void NoteShort(const SessionContext& context, const Record& record) {
  const bool of_samples = std::ranges::any_of(record.gates, [](const GateRow& gate) {
    return gate.unit == "ns" && gate.outcome.effective_samples &&
           gate.outcome.bound != gate.outcome.observed;
  });
  const bool known = std::ranges::all_of(record.results, [](const Result& result) {
    return !result.metrics.latency || KnowsBursts(*result.metrics.latency);
  });
  if (!of_samples || known) return;
  context.notice(
      "a result is of fewer than five intervals (--interval): whether its slow samples come in "
      "bursts cannot be told, and its assertions count every sample as independent");
}

Status Run(PeerLink& link, const SessionContext& context, const RequesterOptions& options,
           Deadline deadline, Farewell& farewell, Record& record) {
  Expected<SideState> side =
      OpenSide(context, options.settings, options.control_path, "requester", record.local);
  if (!side) return Fail(std::move(side.error()));
  Expected<PlanOkMessage> agreed = AgreeOnPlan(link, options, deadline, record);
  if (!agreed) return Fail(std::move(agreed.error()));
  if (Status status = AgreeOnPath(link, options, context, *agreed, deadline, *side, record);
      !status) {
    return status;
  }
  if (Status status = RunWork(LoopRole::kRequester, *side, agreed->plan, link, context, deadline,
                              farewell, record);
      !status) {
    return status;
  }
  record.gates = Judge(options.gates, record);
  SetVerdict(record, options.gates.on_inconclusive);
  NoteUndecided(options.gates.on_inconclusive, context, record);
  NoteShort(context, record);
  if (Status status = SendFrame(link, VerdictMessage(record), deadline); !status) return status;
  Expected<nlohmann::json> answer = ReceiveFrame(link, "verdict", deadline);
  if (!answer) return Fail(std::move(answer.error()));
  // The run has its verdict: a peer that leaves without a goodbye does not change it.
  link.Goodbye(Deadline::After(std::chrono::seconds(1)));
  return {};
}

}  // namespace

void RunRequester(Connection connection, const SessionContext& context,
                  const RequesterOptions& options, Record& record) {
  record.plan = options.plan;
  const AffinityScope affinity;  // pinning is for this session only
  Expected<std::unique_ptr<PeerLink>> link =
      PeerLink::Start(std::move(connection), {.interrupt_fd = context.interrupt.fd()});
  if (!link) {
    record.error = std::move(link.error());
    SetVerdict(record);
    return;
  }
  Farewell farewell(**link);
  const Deadline deadline = Deadline::Earlier(
      options.deadline,
      Deadline::After(std::chrono::nanoseconds(EffectiveDeadlineNs(options.plan))));
  SessionContext extending = context;
  Extended extended;
  if (options.gates.on_inconclusive == OnInconclusive::kExtend) {
    // A run that has its samples ends with a verdict, and not with its deadline.
    extending.more = [&options, &extended, deadline](std::span<const Result> results,
                                                     int64_t measured_ns) {
      constexpr std::chrono::seconds kForTheEnd(3);
      const std::chrono::nanoseconds left = deadline.Left() - kForTheEnd;
      const int64_t longest_ns =
          std::min<int64_t>(options.plan.extend_to_ns, measured_ns + left.count());
      const int64_t more_ns = MoreNs(Judge(options.gates, results), measured_ns, longest_ns);
      extended.times += more_ns > 0 ? 1 : 0;
      extended.total_ns += more_ns;
      return more_ns;
    };
  }
  if (Status status = Run(**link, extending, options, deadline, farewell, record); !status) {
    record.error =
        farewell.Conclude(OwnInterruptFirst(std::move(status.error()), context.interrupt.raised()));
    // What was measured until then may fail already.
    if (!record.results.empty()) record.gates = Judge(options.gates, record);
  }
  NoteExtended(extended, context);
  SetVerdict(record, options.gates.on_inconclusive);
}

}  // namespace verbscope
