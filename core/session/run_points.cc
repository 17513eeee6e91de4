#include "core/session/run_points.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/record/record_json.h"
#include "core/session/monitor.h"
#include "core/session/point_run.h"
#include "core/session/steps.h"

namespace verbscope {
namespace {

Status ExchangeSides(const SideState& side, PeerLink& link, Deadline deadline, Record& record) {
  const nlohmann::json frame = {{"type", "side"}, {"side", ToJson(side.record)}};
  if (Status status = SendFrame(link, frame, deadline); !status) return status;
  Expected<nlohmann::json> received = ReceiveFrame(link, "side", deadline);
  if (!received) return Fail(std::move(received.error()));
  Expected<SideRecord> remote = SideFromJson((*received)["side"]);
  if (!remote) return Fail(std::move(remote.error()));
  record.remote = std::move(*remote);
  return {};
}

void Keep(std::optional<Result> result, Record& record) {
  if (result) record.results.push_back(std::move(*result));
}

}  // namespace

Status RunPoints(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
                 const SessionContext& context, Deadline deadline, Farewell& farewell,
                 Record& record) {
  Monitor monitor(link, *side.device, context.interrupt, deadline);
  std::optional<uint64_t> passed_bytes;
  for (uint32_t run = 0; run < plan.repeat; ++run) {
    for (const uint64_t size : plan.sizes_bytes) {
      PointRun point(role, side, plan, link, monitor, deadline);
      Status status = point.Execute(size, run, passed_bytes, context.more);
      Keep(point.TakeOwn(), record);
      Keep(point.TakePeer(), record);
      if (!status) {
        return EndRun(std::move(status), side, link, context, deadline, farewell, record);
      }
      passed_bytes = std::max(passed_bytes.value_or(0), size);
    }
  }
  return EndRun({}, side, link, context, deadline, farewell, record);
}

Status EndRun(Status status, SideState& side, PeerLink& link, const SessionContext& context,
              Deadline deadline, Farewell& farewell, Record& record) {
  if (side.counters) side.record.counters = side.counters->Changes();
  if (!status) {
    status = Fail(
        farewell.Conclude(OwnInterruptFirst(std::move(status.error()), context.interrupt.raised()),
                          side.record.counters));
    if (record.remote) record.remote->counters = farewell.PeerCounters();
  }
  FinishSide(side, context);
  record.local = side.record;
  return status ? ExchangeSides(side, link, deadline, record) : status;
}

}  // namespace verbscope
