#include "core/cost/run_cost.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/deadline.h"
#include "core/cost/cost_limits.h"
#include "core/cost/cost_meter.h"
#include "core/cost/syscall_counter.h"
#include "core/cost/verb_rows.h"
#include "core/host/affinity.h"
#include "core/record/outcome.h"
#include "core/selection/control_path.h"
#include "core/selection/gid_pair.h"
#include "core/selection/path_mtu.h"
#include "core/session/side.h"

namespace verbscope {
namespace {

// Both ends are this process: the choice of a device is that of two ends on one host, but for the
// soft device, which is taken by name only.
ControlPath OwnPath() {
  ControlPath path;
  path.local_address = "127.0.0.1";
  path.remote_address = path.local_address;
  return path;
}

Status ChoosePath(SideState& side) {
  const std::optional<int> index = side.settings.gid_index;
  Expected<GidPair> pair = ChooseGidPair(side.port, side.port, index, index, OwnPath());
  if (!pair) return Fail(std::move(pair.error()));
  Expected<uint32_t> mtu = ChoosePathMtu(side.port.active_mtu_bytes, side.port.active_mtu_bytes, 0);
  if (!mtu) return Fail(std::move(mtu.error()));
  side.gid = pair->local;
  side.global_route = pair->needs_grh;
  side.path_mtu_bytes = *mtu;
  DescribePath(side);
  return {};
}

Status MeasureGroup(VerbGroup group, CostMeter& meter, const CostStage& stage,
                    const CostPlan& plan) {
  switch (group) {
    case VerbGroup::kPostSend:
      return MeasurePostSend(meter, stage);
    case VerbGroup::kExtendedPost:
      return MeasureExtendedPost(meter, stage);
    case VerbGroup::kPostReceive:
      return MeasurePostReceive(meter, stage);
    case VerbGroup::kPollCq:
      return MeasurePollCq(meter, stage);
    case VerbGroup::kStartPoll:
      return MeasureStartPoll(meter, stage);
    case VerbGroup::kNotify:
      return MeasureNotify(meter, stage);
    case VerbGroup::kGetEvent:
      return MeasureGetEvent(meter, stage);
    case VerbGroup::kRegister:
      return MeasureRegister(meter, stage, plan.max_bytes);
    case VerbGroup::kQueuePair:
      return MeasureQueuePair(meter, stage);
    case VerbGroup::kCq:
      return MeasureCq(meter, stage);
    case VerbGroup::kModifyQp:
      return MeasureModifyQp(meter, stage);
  }
  return {};
}

Status MeasureAll(SideState& side, const CostPlan& plan, const CostLimits& limits, Record& record) {
  Expected<std::unique_ptr<SyscallCounter>> counter = SyscallCounter::Start();
  CostMeter meter(side.clock, plan, limits, counter ? counter->get() : nullptr, record);
  if (!counter) {
    const Error& error = counter.error();
    meter.Skip("enters-kernel", "system calls cannot be counted here: " + error.message +
                                    (error.cause.empty() ? std::string() : ": " + error.cause));
  }
  Expected<uint32_t> inline_bytes = side.device->MaxInlineBytes();
  if (!inline_bytes) return Fail(std::move(inline_bytes.error()));
  const CostStage stage{.device = *side.device, .path = side.Path(), .inline_bytes = *inline_bytes};
  Status status = meter.MeasureOverhead();
  for (const VerbGroup group : plan.groups) {
    if (!status) break;
    status = MeasureGroup(group, meter, stage, plan);
  }
  return status;
}

Status Run(const SessionContext& context, const CostOptions& options, Record& record) {
  const CostLimits limits{
      .interrupt = context.interrupt,
      .deadline = Deadline::After(std::chrono::nanoseconds(EffectiveDeadlineNs(options.plan)))};
  if (Status status = limits.Check(); !status) return status;
  record.loopback = true;
  Expected<SideState> side = OpenSide(context, options.settings, OwnPath(), "local", record.local);
  if (!side) return Fail(std::move(side.error()));
  Status status = ChoosePath(*side);
  if (status) {
    record.local = side->record;
    record.path_mtu_bytes = side->path_mtu_bytes;
    status = MeasureAll(*side, options.plan, limits, record);
  }
  FinishSide(*side, context);
  record.local = side->record;
  return status;
}

void SetVerdict(Status status, Record& record) {
  const auto measures = [](const Result& result) { return result.point.op != "empty_timing"; };
  if (!status) return SetError(std::move(status.error()), record);
  SetOutcome(std::ranges::any_of(record.results, measures) ? "pass" : "inconclusive", record);
}

}  // namespace

void RunVerbCost(const SessionContext& context, const CostOptions& options, Record& record) {
  const AffinityScope affinity;  // pinning is for this run only
  SetVerdict(Run(context, options, record), record);
}

}  // namespace verbscope
