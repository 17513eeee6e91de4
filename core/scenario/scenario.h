// Small two-sided steps: what `imm`, `zero-len-recv` and their kind are made of. A scenario is one
// question about a device, asked by two functions that run at the same time, one on each side. They
// meet at named barriers, tell each other what they saw, and leave named checks behind, and a
// result where something was measured.
//
//   Scenario NoReceive() {
//     return {.name = "no-receive",
//             .requester = [](Stage& stage) -> Status {
//               Expected<FreshQp*> qp = stage.MakeQp({.rnr_retry = 1, .rnr_timer_code = 1});
//               if (!qp) return Fail(std::move(qp.error()));
//               if (Status status = (*qp)->Connect(); !status) return status;
//               … post, stage.Await(…), stage.Check({…}) …
//             },
//             .responder = [](Stage& stage) -> Status {
//               … the same up to Connect(), then stage.Tell({…}) …
//             }};
//   }
//
// What a scenario returns as failed is a run that broke (exit 5 or 2); what a device answered
// wrongly is a check that failed (exit 3), and the next scenario goes on. Both sides end with the
// checks and results of both: those of the requester first.
//
// One Stage per scenario and side, on the session's thread.
#ifndef VERBSCOPE_CORE_SCENARIO_SCENARIO_H_
#define VERBSCOPE_CORE_SCENARIO_SCENARIO_H_

#include <infiniband/verbs.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/clock/clock.h"
#include "core/endpoint/connect.h"
#include "core/histogram/histogram.h"
#include "core/plan/plan.h"
#include "core/record/record.h"
#include "core/scenario/fresh_qp.h"
#include "core/scenario/qp_set.h"
#include "core/session/monitor.h"
#include "core/wait/stop.h"
#include "transports/control/peer_link.h"
#include "transports/device.h"

namespace verbscope {

class Stage;

struct Scenario {
  std::string name;  // of the scenario, and of its check where it has one only
  std::function<Status(Stage&)> requester;
  std::function<Status(Stage&)> responder;
};

// What a session lends to its scenarios. Everything outlives the Stage.
struct StageParts {
  bool requester = false;
  Device& device;
  const Plan& plan;
  const PathOptions& path;
  const Clock& clock;
  PeerLink& link;
  Monitor& monitor;
  Deadline deadline;  // of the whole command
  // Whose expectations apply to each side: provider names, "mlx5", "rxe", "soft".
  std::string requester_kind;
  std::string responder_kind;
  // Told to this side's user at once, and kept in its record.
  const std::function<void(const std::string&)>& notice;
};

class Stage {
 public:
  Stage(const StageParts& parts, std::string name) : parts_(parts), name_(std::move(name)) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  bool requester() const { return parts_.requester; }
  Device& device() const { return parts_.device; }
  const Plan& plan() const { return parts_.plan; }
  const PathOptions& path() const { return parts_.path; }
  const Clock& clock() const { return parts_.clock; }
  const std::string& name() const { return name_; }
  uint64_t size_bytes() const { return plan().sizes_bytes.front(); }
  uint64_t iterations() const { return plan().iterations.value_or(1); }
  const std::string& requester_kind() const { return parts_.requester_kind; }
  const std::string& responder_kind() const { return parts_.responder_kind; }

  // Both sides come to `barrier`. The name makes a scenario whose sides differ a sentence and not a
  // deadlock.
  Status Meet(std::string_view barrier);
  // What one side tells, the other must hear, in the same order. Small: a frame at most.
  Status Tell(const nlohmann::json& content);
  Expected<nlohmann::json> Hear();
  // Both tell, then both hear.
  Expected<nlohmann::json> Swap(const nlohmann::json& content);
  // The same for what a FreshQp needs to connect.
  Expected<EndpointInfo> SwapEndpoints(const EndpointInfo& own);

  // A queue pair of this side with what belongs to it. Lives until both sides are through with the
  // scenario: one that vanished early would answer the other's retransmission with silence.
  Expected<FreshQp*> MakeQp(const FreshQpOptions& options);
  // Likewise several queue pairs that share completion queues.
  Expected<QpSet*> MakeQpSet(const QpSetOptions& options);

  // The next completion, or none within `limit`. Polls without a break, so `limit` costs a CPU.
  // Fails when the peer is lost, the run is interrupted, its deadline has passed or polling failed.
  Expected<std::optional<ibv_wc>> Await(ibv_cq* cq, std::chrono::nanoseconds limit);
  // Sleeps for `time`; fails as Await does.
  Status Rest(std::chrono::nanoseconds time);
  // For threads of a scenario's own, which look at it in every wait; and the failure of a run that
  // it has stopped, of this scenario's thread.
  const StopSignal& stop() const { return parts_.monitor.stop(); }
  Status Stopped() const;

  // From now on an asynchronous event of a CQ, as of a QP, does not stop the run: it is waited for.
  // Forgets all events until now.
  void ExpectCqEvents();
  // The first event of a CQ since ExpectCqEvents or the last call, or none within `limit`. Of
  // whichever CQ: devices name theirs in different ways.
  Expected<std::optional<std::string>> AwaitCqEvent(std::chrono::nanoseconds limit);

  // All asynchronous events since the last call, of this side's device; and why they could not be
  // read, if so.
  std::vector<std::string> TakeAsyncEvents() { return parts_.monitor.TakeEvents(); }
  std::optional<Error> events_error() const { return parts_.monitor.events_error(); }

  // A point in time, and the time since one: how long a request took to fail.
  uint64_t Now() const;
  int64_t NsSince(uint64_t ticks) const { return clock().scale().Nanoseconds(Now() - ticks); }
  // How long a completion may take that is due: two seconds, or longer where the plan's
  // retransmissions take longer.
  std::chrono::nanoseconds CompletionLimit() const;

  void Check(CheckRow row) { checks_.push_back(std::move(row)); }
  // A latency of this side. `definition` and `ended_by` as in LatencyMetrics; `point` lacks what
  // every scenario has in common (one QP, busy polling, one in flight).
  void Measured(Point point, const Histogram& histogram, std::string_view definition,
                std::string_view ended_by);
  // A result that is more than a latency; as it is, complete with its point and side.
  void Keep(Result result) { results_.push_back(std::move(result)); }
  // A whole sentence that the user of this side should know.
  void Notice(const std::string& text) { parts_.notice(text); }
  // No later scenario is worth running: each would wait in vain. `why` ends in their rows.
  void GiveUp(std::string why) { give_up_ = std::move(why); }

  // For the session, after the scenario.
  std::vector<CheckRow> TakeChecks() { return std::move(checks_); }
  std::vector<Result> TakeResults() { return std::move(results_); }
  const std::string& give_up() const { return give_up_; }
  Status CloseQps();  // the first failure

 private:
  const StageParts& parts_;
  const std::string name_;
  std::vector<std::unique_ptr<FreshQp>> qps_;
  std::vector<std::unique_ptr<QpSet>> qp_sets_;
  std::vector<CheckRow> checks_;
  std::vector<Result> results_;
  std::string give_up_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_SCENARIO_H_
