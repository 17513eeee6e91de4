// --modes, --rates and the other options of event-vs-poll.
#include <string>
#include <utility>

#include "cmd/options.h"
#include "core/plan/mode_plan.h"

namespace verbscope {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kDurationNs = 800 * kMs;
constexpr int64_t kWarmupNs = 100 * kMs;
constexpr int64_t kQuickDurationNs = 100 * kMs;
constexpr int64_t kQuickWarmupNs = 20 * kMs;
constexpr uint32_t kRepeats = 3;
constexpr uint32_t kQuickRepeats = 2;
// Of an open loop: what a stall leaves unanswered.
constexpr uint32_t kDepth = 2048;

}  // namespace

void AddModeOptions(CLI::App& app, PlanOptions& o) {
  app.add_option("-s,--size", o.sizes,
                 "message bytes; suffixes K M G Ki Mi Gi are powers of 1024 (default: 64)")
      ->type_name("SIZE");
  app.add_option("--modes", o.modes,
                 "ways of waiting: busy, busy:pause, event, solicited, hybrid:TIME (default: "
                 "busy,event,hybrid:20us); others are compared with busy")
      ->type_name("LIST");
  app.add_option("--rates", o.rates,
                 "offered loads in messages per second, or N% of what busy polling sustains "
                 "(default: 1000,10K,80%); a closed loop and streaming are always measured")
      ->type_name("LIST");
  app.add_option("--moderation", o.moderation,
                 "event mode again with events held back: COUNT:TIME, such as 16:8us,64:32us")
      ->type_name("LIST");
  app.add_option("--p99", o.p99_limit,
                 "name the cheapest mode whose p99 stays within TIME (default: twice the best)")
      ->type_name("TIME");
  app.add_option("-D,--duration", o.duration, "measured time of each point (default: 800ms)")
      ->type_name("TIME");
  app.add_option("--warmup", o.warmup, "warm-up of each point, a time (default: 100ms)")
      ->type_name("TIME");
  app.add_option("--repeat", o.repeat,
                 "runs, between which the modes take turns (default: 3; with --quick 2)")
      ->type_name("N");
  app.add_option("--interval", o.interval, "length of a row of the time series")
      ->type_name("TIME")
      ->capture_default_str();
  app.add_flag("--quick", o.quick, "100 ms measured, 20 ms warm-up, 2 runs: below 10 s in all");
  AddPathOptions(app, o);
}

Status ParseModeOptions(const PlanOptions& options, Plan& plan) {
  if (options.duration.empty()) plan.duration_ns = options.quick ? kQuickDurationNs : kDurationNs;
  if (options.warmup.empty()) plan.warmup_ns = options.quick ? kQuickWarmupNs : kWarmupNs;
  plan.repeat = options.repeat.value_or(options.quick ? kQuickRepeats : kRepeats);
  plan.tx_depth = kDepth;
  plan.rx_depth = kDepth;
  SetDefaultModes(plan);
  SetDefaultLoads(plan);
  if (Status status = TakeOption(options.modes, "--modes", ParseModes, plan.modes); !status) {
    return status;
  }
  if (options.rates) {
    if (Status status = ParseLoads(*options.rates, plan); !status) {
      return Fail(NameOption(std::move(status.error()), "--rates", *options.rates));
    }
  }
  if (Status status =
          TakeOption(options.moderation, "--moderation", ParseModerations, plan.moderations);
      !status) {
    return status;
  }
  return TakeOption(options.p99_limit, "--p99", ParseDuration, plan.p99_limit_ns);
}

}  // namespace verbscope
