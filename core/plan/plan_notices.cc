#include <fmt/core.h>

#include <algorithm>

#include "core/causes/rc_timers.h"
#include "core/plan/mode_plan.h"
#include "core/plan/operation.h"
#include "core/plan/plan.h"
#include "core/plan/rnr_plan.h"

namespace verbscope {
namespace {

std::string Seconds(int64_t ns) { return fmt::format("{:.1f} s", static_cast<double>(ns) / 1e9); }

std::string Milliseconds(uint32_t timer_code) {
  return fmt::format("{:g} ms", static_cast<double>(RnrTimerNs(timer_code)) / 1e6);
}

void AddRnrTest(const Plan& plan, std::vector<std::string>& notices) {
  const std::vector<uint32_t> codes = TimerCodesOf(plan);
  notices.push_back(fmt::format(
      "rnr-test takes up to {} here, for {} RNR timer code{} and what follows; --timer-codes "
      "chooses them",
      Seconds(RnrTestPlannedNs(plan)), codes.size(), codes.size() == 1 ? "" : "s"));
  notices.push_back(
      fmt::format("the starved steps keep {} messages in flight against {} receives, more than "
                  "the peer can take, on purpose",
                  kStarvedInFlight, kStarvedReceives));
}

void AddEventVsPoll(const Plan& plan, std::vector<std::string>& notices) {
  notices.push_back(fmt::format(
      "event-vs-poll takes about {} here: {} ways of waiting, {} loads, {} run{} of {} each",
      Seconds(EventVsPollPlannedNs(plan)), ModesOf(plan).size(), LoadsOf(plan).size(), plan.repeat,
      plan.repeat == 1 ? "" : "s", DurationText(plan.duration_ns)));
}

void AddStarvation(const Plan& plan, std::vector<std::string>& notices) {
  const Operation* operation = FindOperation(plan.command);
  if (operation == nullptr || !OperationOf(plan).takes_receives) return;
  const uint64_t in_flight = plan.tx_depth;
  if (in_flight <= plan.rx_depth) return;
  if (operation->shape == LoopShape::kStream) {
    // The receiver's credits hold the sender back: no RNR, but not the depth that was asked for.
    notices.push_back(fmt::format(
        "{} messages in flight exceed the {} receives that the peer posts ahead: no more than {} "
        "are on the way at a time",
        in_flight, plan.rx_depth, plan.rx_depth));
    return;
  }
  notices.push_back(fmt::format(
      "{} messages in flight exceed the {} receives that the peer posts ahead: it will not be "
      "ready for some, and each of those waits {} or longer",
      in_flight, plan.rx_depth, Milliseconds(plan.rnr_timer_code)));
}

}  // namespace

std::vector<std::string> PlanNotices(const Plan& plan) {
  std::vector<std::string> notices;
  if (plan.command == kRnrTest) AddRnrTest(plan, notices);
  if (plan.command == kEventVsPoll) AddEventVsPoll(plan, notices);
  AddStarvation(plan, notices);
  const std::vector<uint32_t> codes =
      plan.command == kRnrTest ? TimerCodesOf(plan) : std::vector<uint32_t>();
  if (plan.rnr_timer_code == 0 || std::ranges::find(codes, 0U) != codes.end()) {
    notices.push_back(fmt::format(
        "RNR timer code 0 is the longest wait, {}, and not none: a receiver that is late once "
        "stops its sender for that long; code 1 is the shortest, {}",
        Milliseconds(0), Milliseconds(1)));
  }
  return notices;
}

}  // namespace verbscope
