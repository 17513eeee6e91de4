#include "core/session/run_modes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/modes/mode_summary.h"
#include "core/plan/mode_plan.h"
#include "core/record/record_json.h"
#include "core/session/jitter_floor.h"
#include "core/session/messages.h"
#include "core/session/monitor.h"
#include "core/session/phase.h"
#include "core/session/point_run.h"
#include "core/session/run_points.h"

namespace verbscope {
namespace {

// Whether events of this device can be held back; the reason if not.
std::string WhyNoModeration(Device& device, const std::vector<Moderation>& wanted) {
  if (wanted.empty()) return "";
  Expected<CompChannel> channel = device.CreateCompChannel();
  if (!channel) return channel.error().message;
  Expected<Cq> cq = device.CreateCq({.cqe = 1, .channel = channel->get()});
  if (!cq) return cq.error().message;
  for (const Moderation moderation : wanted) {
    const Status status = device.ModerateCq(cq->get(), moderation.count, moderation.period_us);
    if (!status) return status.error().message;
  }
  return "";
}

class ModesRun {
 public:
  ModesRun(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
           const SessionContext& context, Deadline deadline, Record& record)
      : role_(role),
        side_(side),
        plan_(plan),
        link_(link),
        context_(context),
        deadline_(deadline),
        record_(record),
        monitor_(link, *side.device, context.interrupt, deadline),
        loads_(LoadsOf(plan)),
        modes_(ModesOf(plan)) {}

  Status Execute() {
    if (Status status = WatchHosts(); !status) return status;
    if (Status status = SwapAbilities(); !status) return status;
    if (Status status = MeasureBusyRate(); !status) return status;
    const std::vector<ModePoint> points = ModePointsOf(plan_);
    for (size_t i = 0; i < points.size(); ++i) {
      if (Status status = RunPoint(points[i], i, points.size()); !status) return status;
    }
    return {};
  }

  // What came of it, complete or not.
  void Conclude() {
    if (role_ == LoopRole::kResponder) return;
    ModeSummary summary = SummarizeModes(plan_, record_.results);
    if (busy_rate_ > 0) summary.busy_sustains_per_s = busy_rate_;
    summary.unsuited = unsuited_;
    record_.modes = std::move(summary);
  }

  void CheckWakeUps() { record_.checks.push_back(LostWakeUpsRow(record_.results)); }

 private:
  bool requester() const { return role_ == LoopRole::kRequester; }

  // One after the other: on one host they would disturb each other.
  Status WatchHosts() {
    for (const LoopRole turn : {LoopRole::kRequester, LoopRole::kResponder}) {
      if (turn == role_) {
        Progress("watching the host for gaps");
        side_.record.jitter_floor = MeasureJitterFloor(
            side_.clock, JitterWatchNs(plan_), [this] { return context_.interrupt.raised(); });
        if (context_.interrupt.raised()) return Fail(InterruptedError());
        NoteBusyHost(*side_.record.jitter_floor);
      }
      if (Status status = Barrier(link_, "jitter floor", deadline_); !status) return status;
    }
    return {};
  }

  // Percentiles of a host that was busy with something else are no property of a way of waiting.
  void NoteBusyHost(const JitterFloor& floor) const {
    constexpr double kMuch = 0.01;
    if (floor.lost_share < kMuch) return;
    context_.notice(fmt::format(
        "this host kept a thread that never rests from running for {:.1f} % of the time before the "
        "runs: tails, and differences between ways of waiting, are partly those of its other work",
        floor.lost_share * 100));
  }

  // Both sides leave out what one of them cannot do.
  Status SwapAbilities() {
    const std::string own = WhyNoModeration(*side_.device, plan_.moderations);
    const nlohmann::json frame = {{"type", "abilities"}, {"no_moderation", own}};
    if (Status status = SendFrame(link_, frame, deadline_); !status) return status;
    Expected<nlohmann::json> received = ReceiveFrame(link_, "abilities", deadline_);
    if (!received) return Fail(std::move(received.error()));
    std::string peer;
    if (const auto text = received->find("no_moderation");
        text != received->end() && text->is_string()) {
      peer = Printable(text->get_ref<const std::string&>());
    }
    no_moderation_ = own.empty() ? peer : own;
    for (const Load& load : loads_) {
      for (const Mode& mode : modes_) {
        if (const std::string why = WhyNot(load, mode); !why.empty()) {
          unsuited_.push_back(fmt::format("{}, {}: {}", ToText(mode), LoadText(load), why));
        }
      }
    }
    return {};
  }

  std::string WhyNot(const Load& load, const Mode& mode) const {
    if (mode.moderation && !no_moderation_.empty()) return no_moderation_;
    const std::optional<Error> unsuited = Unsuited(plan_, load, mode);
    return unsuited ? unsuited->message : "";
  }

  // The requester measures it and tells the other side.
  Status MeasureBusyRate() {
    if (plan_.busy_shares_percent.empty()) return {};
    Progress("measuring the rate that busy polling sustains");
    std::optional<Result> own;
    Status status = RunPlan(PlanOfBusyRate(plan_), {}, 0, &own);
    if (!status) return status;
    if (requester()) {
      if (own && own->metrics.load) busy_rate_ = own->metrics.load->achieved_per_s.value_or(0);
      const nlohmann::json frame = {{"type", "busy_rate"}, {"per_s", busy_rate_}};
      if (status = SendFrame(link_, frame, deadline_); !status) return status;
    } else {
      Expected<nlohmann::json> frame = ReceiveFrame(link_, "busy_rate", deadline_);
      if (!frame) return Fail(std::move(frame.error()));
      const auto rate = frame->find("per_s");
      if (rate != frame->end() && rate->is_number()) busy_rate_ = rate->get<double>();
    }
    if (std::isfinite(busy_rate_) && busy_rate_ >= kMinRate && busy_rate_ <= kMaxRate) return {};
    Error error;
    error.error_class = ErrorClass::kRun;
    error.message =
        "busy polling answered no message within the time: there is no rate to take a "
        "share of";
    error.next_step = "raise --duration, or give --rates without a share";
    return Fail(std::move(error));
  }

  Status RunPoint(const ModePoint& point, size_t index, size_t count) {
    Load load = loads_[point.load];
    const Mode& mode = modes_[point.mode];
    if (!WhyNot(load, mode).empty()) return {};
    Progress(fmt::format("{} of {}: {}, {}", index + 1, count, ToText(mode), LoadText(load)));
    if (load.busy_share_percent > 0) {
      load.rate_per_s = std::max(kMinRate, busy_rate_ * load.busy_share_percent / 100);
    }
    return RunPlan(PlanOfPoint(plan_, load, mode), mode, point.run, nullptr);
  }

  // `own`: where this side's result goes instead of the record.
  Status RunPlan(const Plan& plan, const Mode& mode, uint32_t run, std::optional<Result>* own) {
    side_.settings.wait = side_.peer_wait = mode.wait;
    ShareCpus(side_, side_.same_host, ResponderSleeps(plan, *side_.device));
    // The last one stays: after a failure the peer must hear the reason before its queue pairs go.
    point_.reset();
    point_plan_ = plan;
    point_.emplace(role_, side_, point_plan_, link_, monitor_, deadline_);
    Status status = point_->Execute(plan.sizes_bytes.front(), run, passed_bytes_);
    std::optional<Result> first = point_->TakeOwn();
    std::optional<Result> second = point_->TakePeer();
    if (own != nullptr) {
      *own = std::move(first);
    } else {
      for (std::optional<Result>* result : {&first, &second}) {
        if (*result) record_.results.push_back(std::move(**result));
      }
    }
    if (status) passed_bytes_ = plan.sizes_bytes.front();
    return status;
  }

  void Progress(const std::string& text) const {
    if (context_.progress) context_.progress(text);
  }

  const LoopRole role_;
  SideState& side_;
  const Plan& plan_;
  PeerLink& link_;
  const SessionContext& context_;
  const Deadline deadline_;
  Record& record_;
  Monitor monitor_;
  const std::vector<Load> loads_;
  const std::vector<Mode> modes_;
  std::string no_moderation_;
  std::vector<std::string> unsuited_;
  double busy_rate_ = 0;
  std::optional<uint64_t> passed_bytes_;
  Plan point_plan_;  // of point_
  std::optional<PointRun> point_;
};

}  // namespace

Status RunModes(LoopRole role, SideState& side, const Plan& plan, PeerLink& link,
                const SessionContext& context, Deadline deadline, Farewell& farewell,
                Record& record) {
  ModesRun run(role, side, plan, link, context, deadline, record);
  Status status = run.Execute();
  run.Conclude();
  if (status) run.CheckWakeUps();
  return EndRun(std::move(status), side, link, context, deadline, farewell, record);
}

}  // namespace verbscope
