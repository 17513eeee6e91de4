#include "core/session/run_scenarios.h"

#include <fmt/core.h>

#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/checks/catalog.h"
#include "core/plan/check_plan.h"
#include "core/plan/mode_plan.h"
#include "core/plan/step_commands.h"
#include "core/record/record_json.h"
#include "core/scenario/catalog.h"
#include "core/session/monitor.h"
#include "core/session/run_modes.h"
#include "core/session/run_points.h"

namespace verbscope {
namespace {

constexpr size_t kMostRows = 1024;  // of one scenario

// What one side of a scenario leaves behind.
struct Outcome {
  std::vector<CheckRow> checks;
  std::vector<Result> results;
  std::string give_up;
};

nlohmann::json ToJson(const Outcome& outcome, const std::string& name) {
  nlohmann::json frame = {{"type", "scenario_end"},
                          {"name", name},
                          {"checks", nlohmann::json::array()},
                          {"results", nlohmann::json::array()},
                          {"give_up", outcome.give_up}};
  for (const CheckRow& row : outcome.checks) frame["checks"].emplace_back(ToJson(row));
  for (const Result& result : outcome.results) {
    frame["results"].emplace_back(ToJson(result, ResultForm::kWire));
  }
  return frame;
}

Error OutOfStep(const std::string& name) {
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message =
      fmt::format("the peer ended another step than \"{}\", or ended it otherwise", name);
  error.cause = "two versions that do not understand each other";
  error.next_step = "run the same verbscope version on both hosts";
  return error;
}

template <class Row, class Parse>
Status Read(const nlohmann::json& frame, const char* member, const std::string& name, Parse parse,
            std::vector<Row>& rows) {
  const auto array = frame.find(member);
  if (array == frame.end() || !array->is_array() || array->size() > kMostRows) {
    return Fail(OutOfStep(name));
  }
  for (const nlohmann::json& element : *array) {
    auto row = parse(element);
    if (!row) return Fail(std::move(row.error()));
    rows.push_back(std::move(*row));
  }
  return {};
}

Expected<Outcome> OutcomeFromJson(const nlohmann::json& frame, const std::string& name) {
  Outcome outcome;
  const auto named = frame.find("name");
  if (named == frame.end() || *named != name) return Fail(OutOfStep(name));
  if (Status status = Read(frame, "checks", name, CheckRowFromJson, outcome.checks); !status) {
    return Fail(std::move(status.error()));
  }
  if (Status status = Read(frame, "results", name, ResultFromJson, outcome.results); !status) {
    return Fail(std::move(status.error()));
  }
  const auto give_up = frame.find("give_up");
  if (give_up != frame.end() && give_up->is_string()) {
    outcome.give_up = Printable(give_up->get_ref<const std::string&>());
  }
  return outcome;
}

void Append(Outcome outcome, Record& record) {
  record.checks.insert(record.checks.end(), std::make_move_iterator(outcome.checks.begin()),
                       std::make_move_iterator(outcome.checks.end()));
  record.results.insert(record.results.end(), std::make_move_iterator(outcome.results.begin()),
                        std::make_move_iterator(outcome.results.end()));
}

// The provider whose expectations apply to a device.
std::string KindOf(const DeviceInfo& info) {
  return info.imitates.empty() ? info.provider : info.imitates;
}

// Both sides name their device's kind, and so the table of expectations.
Expected<std::string> SwapKinds(const DeviceInfo& info, PeerLink& link, Deadline deadline) {
  const nlohmann::json frame = {{"type", "scenarios"}, {"device_kind", KindOf(info)}};
  if (Status status = SendFrame(link, frame, deadline); !status) {
    return Fail(std::move(status.error()));
  }
  Expected<nlohmann::json> received = ReceiveFrame(link, "scenarios", deadline);
  if (!received) return Fail(std::move(received.error()));
  const auto kind = received->find("device_kind");
  if (kind == received->end() || !kind->is_string()) return Fail(OutOfStep("scenarios"));
  return Printable(kind->get_ref<const std::string&>(), 64);
}

class ScenarioRun {
 public:
  ScenarioRun(const StageParts& parts, Record& record) : parts_(parts), record_(record) {}

  Status Execute(const Scenario& scenario) {
    if (!give_up_.empty()) {
      record_.checks.push_back({.name = scenario.name,
                                .status = "skip",
                                .expected = "",
                                .observed = "",
                                .why = "not tried: " + give_up_,
                                .source = ""});
      return {};
    }
    stage_.emplace(parts_, scenario.name);
    Status status = parts_.requester ? scenario.requester(*stage_) : scenario.responder(*stage_);
    Outcome own{.checks = stage_->TakeChecks(),
                .results = stage_->TakeResults(),
                .give_up = stage_->give_up()};
    if (!status) {
      Append(std::move(own), record_);
      return status;
    }
    if (status = Merge(std::move(own), scenario.name); !status) return status;
    // Neither side's queue pair may vanish while the other's still expects an answer.
    if (status = stage_->Meet("teardown"); !status) return status;
    return stage_->CloseQps();
  }

 private:
  Status Merge(Outcome own, const std::string& name) {
    Status sent = SendFrame(parts_.link, ToJson(own, name), parts_.deadline);
    if (!sent) return sent;
    Expected<nlohmann::json> frame = ReceiveFrame(parts_.link, "scenario_end", parts_.deadline);
    if (!frame) return Fail(std::move(frame.error()));
    Expected<Outcome> peer = OutcomeFromJson(*frame, name);
    if (!peer) return Fail(std::move(peer.error()));
    Outcome& first = parts_.requester ? own : *peer;
    Outcome& second = parts_.requester ? *peer : own;
    give_up_ = first.give_up.empty() ? second.give_up : first.give_up;
    Append(std::move(first), record_);
    Append(std::move(second), record_);
    return {};
  }

  const StageParts& parts_;
  Record& record_;
  std::string give_up_;
  std::optional<Stage> stage_;  // of the last scenario: a broken run keeps its queue pairs
};

}  // namespace

Status RunScenarios(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
                    const SessionContext& context, Deadline deadline, Farewell& farewell,
                    Record& record) {
  Monitor monitor(link, *side.device, context.interrupt, deadline);
  monitor.TolerateQpEvents();
  const PathOptions path = side.Path();
  const bool requester = role == LoopRole::kRequester;
  const std::string own_kind = KindOf(side.device->info());
  Expected<std::string> peer_kind = SwapKinds(side.device->info(), link, deadline);
  if (!peer_kind) {
    return EndRun(Fail(std::move(peer_kind.error())), side, link, context, deadline, farewell,
                  record);
  }
  const StageParts parts{.requester = requester,
                         .device = *side.device,
                         .plan = plan,
                         .path = path,
                         .clock = side.clock,
                         .link = link,
                         .monitor = monitor,
                         .deadline = deadline,
                         .requester_kind = requester ? own_kind : *peer_kind,
                         .responder_kind = requester ? *peer_kind : own_kind,
                         .notice = context.notice};
  ScenarioRun run(parts, record);  // outlives the farewell of EndRun, and so do its queue pairs
  Status status;
  for (const Scenario& scenario : ScenariosOf(plan)) {
    status = run.Execute(scenario);
    if (!status) break;
  }
  if (plan.command == kCheck) record.checks = FoldChecks(std::move(record.checks));
  return EndRun(std::move(status), side, link, context, deadline, farewell, record);
}

Status RunWork(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
               const SessionContext& context, Deadline deadline, Farewell& farewell,
               Record& record) {
  side.counters = std::make_unique<DeviceCounters>(*side.device, side.port.number);
  const auto run = FindStepCommand(plan.command) != nullptr ? RunScenarios
                   : plan.command == kEventVsPoll           ? RunModes
                                                            : RunPoints;
  return run(role, side, plan, link, context, deadline, farewell, record);
}

}  // namespace verbscope
