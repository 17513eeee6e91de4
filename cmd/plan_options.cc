// --size, --duration and the rest of what travels to the peer.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "cmd/options.h"
#include "core/plan/cq_plan.h"
#include "core/plan/mode_plan.h"
#include "core/plan/operation.h"
#include "core/plan/rnr_plan.h"
#include "core/plan/step_commands.h"

namespace verbscope {
namespace {

constexpr uint32_t kBandwidthDepth = 128;
// An open loop has as many messages in flight as a stall leaves unanswered: 20 ms at 100,000/s.
constexpr uint32_t kOpenLoopDepth = 2048;
constexpr uint32_t kDefaultReceives = 512;
constexpr int64_t kQuickDurationNs = 200'000'000;
constexpr int64_t kQuickWarmupNs = 50'000'000;

bool AllDigits(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

// A number of messages has no unit; a time has one.
Status ParseWarmup(const std::string& text, Plan& plan) {
  if (AllDigits(text)) {
    Expected<uint64_t> messages = ParseSize(text);
    if (!messages) return Fail(NameOption(std::move(messages.error()), "--warmup", text));
    plan.warmup_iterations = *messages;
    plan.warmup_ns = 0;
    return {};
  }
  Expected<int64_t> time = ParseDuration(text);
  if (!time) return Fail(NameOption(std::move(time.error()), "--warmup", text));
  plan.warmup_ns = *time;
  return {};
}

Status ParseTimes(const PlanOptions& options, Plan& plan) {
  if (options.quick) {
    plan.duration_ns = kQuickDurationNs;
    plan.warmup_ns = kQuickWarmupNs;
  }
  if (plan.command == kCqScale) {
    plan.duration_ns = options.quick ? kScaleQuickDurationNs : kScaleDurationNs;
  }
  struct Row {
    const char* option;
    const std::string& text;
    int64_t& target;
  };
  for (const Row& row : {Row{"--duration", options.duration, plan.duration_ns},
                         Row{"--interval", options.interval, plan.interval_ns},
                         Row{"--deadline", options.deadline, plan.deadline_ns}}) {
    if (row.text.empty()) continue;
    Expected<int64_t> time = ParseDuration(row.text);
    if (!time) return Fail(NameOption(std::move(time.error()), row.option, row.text));
    row.target = *time;
  }
  if (!options.warmup.empty()) return ParseWarmup(options.warmup, plan);
  return {};
}

bool Streams(const Plan& plan) {
  const Operation* operation = FindOperation(plan.command);
  return operation != nullptr && operation->shape == LoopShape::kStream;
}

std::string DefaultSize(const Plan& plan) {
  if (Streams(plan)) return "65536";
  return plan.command == "atomic-lat" ? "8" : "64";
}

Status ParseRate(const std::string& text, Plan& plan) {
  Expected<double> rate = ParseRatePerS(text);
  if (!rate) return Fail(NameOption(std::move(rate.error()), "--rate", text));
  plan.rate_per_s = *rate;
  return {};
}

// Sizes, depths and what the command's messages carry; defaults depend on each other.
Status ParseShape(const PlanOptions& options, Plan& plan) {
  const std::string sizes_text = options.sizes.empty() ? DefaultSize(plan) : options.sizes;
  Expected<std::vector<uint64_t>> sizes = ParseSizes(sizes_text);
  if (!sizes) return Fail(NameOption(std::move(sizes.error()), "--size", sizes_text));
  plan.sizes_bytes = std::move(*sizes);
  plan.imm = options.imm;
  plan.bidirectional = options.bidirectional;
  plan.verify = options.verify;
  if (!options.atomic_op.empty()) {
    Expected<AtomicOp> op = ParseAtomicOp(options.atomic_op);
    if (!op) return Fail(NameOption(std::move(op.error()), "--op", options.atomic_op));
    if (plan.command != "atomic-lat") {
      return Fail(
          UsageError(fmt::format("--op: {} does no Atomics", plan.command), {}, "leave it out"));
    }
    plan.atomic_op = *op;
  }
  if (!options.rate.empty()) {
    if (Status status = ParseRate(options.rate, plan); !status) return status;
  }
  if (!options.arrival.empty()) {
    Expected<Arrival> arrival = ParseArrival(options.arrival);
    if (!arrival) return Fail(NameOption(std::move(arrival.error()), "--arrival", options.arrival));
    if (options.rate.empty()) {
      return Fail(
          UsageError("--arrival says when the messages of an open loop are due, which is "
                     "asked for by --rate",
                     {}, "add --rate or leave --arrival out"));
    }
    plan.arrival = *arrival;
  }
  const bool scale = plan.command == kCqScale;
  plan.qps = options.qps.value_or(scale ? kScaleQps : 1);
  plan.tx_depth = options.tx_depth.value_or(scale                 ? kScaleTxDepth
                                            : Streams(plan)       ? kBandwidthDepth
                                            : plan.rate_per_s > 0 ? kOpenLoopDepth
                                                                  : 1);
  plan.rx_depth = options.rx_depth.value_or(
      plan.rate_per_s > 0 ? std::max(kDefaultReceives, plan.tx_depth) : kDefaultReceives);
  return {};
}

}  // namespace

namespace {

// What only some commands take; CheckCombination says which.
void AddShapeOptions(CLI::App& app, PlanOptions& o) {
  app.add_flag("-b,--bidirectional", o.bidirectional, "both sides send at once (bandwidth)");
  app.add_flag("--imm", o.imm, "with immediate data (SEND, WRITE)");
  app.add_option("--op", o.atomic_op, "Atomic: fetch-add or compare-swap (default: fetch-add)")
      ->type_name("OP");
  app.add_flag("--verify", o.verify, "fill payloads with a pattern and check them");
  app.add_option("--rate", o.rate,
                 "open loop: messages per second, latency from the intended send time")
      ->type_name("N");
  app.add_option("--arrival", o.arrival, "with --rate: fixed or poisson (default: fixed)")
      ->type_name("KIND");
}

}  // namespace

void AddPathOptions(CLI::App& app, PlanOptions& o) {
  app.add_option("-m,--mtu", o.mtu_bytes, "path MTU (default: the smaller of both ports)")
      ->type_name("BYTES");
  app.add_option("--timeout", o.timeout_code, "ACK timeout code, 4.096 us * 2^CODE")
      ->type_name("CODE")
      ->capture_default_str();
  app.add_option("--retry", o.retry_count, "transport retries")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--rnr-timer", o.rnr_timer_code, "RNR NAK timer code; 12 is 0.64 ms")
      ->type_name("CODE")
      ->capture_default_str();
  app.add_option("--rnr-retry", o.rnr_retry, "RNR retries; 7 is without limit")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--rd-atomic", o.rd_atomic, "READs and Atomics in flight (default: the device's)")
      ->type_name("N");
  app.add_option("--sl", o.service_level, "service level")->type_name("N")->capture_default_str();
  app.add_option("--traffic-class", o.traffic_class, "traffic class of the global route")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--flow-label", o.flow_label, "flow label of the global route")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--pkey-index", o.pkey_index, "P_Key index")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--hop-limit", o.hop_limit, "hop limit of the global route")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--deadline", o.deadline,
                 "limit of the whole command (default: planned time + 30s)")
      ->type_name("TIME");
}

void AddPlanOptions(CLI::App& app, PlanOptions& o) {
  app.add_option("-s,--size", o.sizes,
                 "message bytes: N, A:B, all or all+-1; suffixes K M G Ki Mi Gi are powers of 1024 "
                 "(default: 64 for latency, 8 for Atomics, 65536 for bandwidth)")
      ->type_name("SIZE");
  CLI::Option* duration =
      app.add_option("-D,--duration", o.duration, "measured time (default: 2s)")->type_name("TIME");
  app.add_option("-n,--iterations", o.iterations, "measured messages instead of a time")
      ->type_name("N")
      ->excludes(duration);
  app.add_option("--warmup", o.warmup, "warm-up, a time or a number of messages (default: 200ms)")
      ->type_name("TIME|N");
  app.add_option("-q,--qps", o.qps, "queue pairs (default: 1)")->type_name("N");
  app.add_option("-t,--tx-depth", o.tx_depth,
                 "messages in flight per queue pair (default: 1 for latency, 2048 with --rate, 128 "
                 "for bandwidth)")
      ->type_name("N");
  app.add_option("-r,--rx-depth", o.rx_depth,
                 "receives posted ahead (default: 512, with --rate at least --tx-depth)")
      ->type_name("N");
  app.add_option("-l,--post-list", o.post_list, "requests per post")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--signal-every", o.signal_every, "signal one send in N")
      ->type_name("N|auto")
      ->capture_default_str();
  app.add_option("-I,--inline", o.inline_mode, "auto, off or a limit in bytes")
      ->type_name("MODE")
      ->capture_default_str();
  AddPathOptions(app, o);
  app.add_option("--repeat", o.repeat, "runs, each with fresh queue pairs (default: 1)")
      ->type_name("N");
  app.add_option("--interval", o.interval, "length of a row of the time series")
      ->type_name("TIME")
      ->capture_default_str();
  AddShapeOptions(app, o);
  app.add_flag("--quick", o.quick, "200 ms measured, 50 ms warm-up: a check that all works");
}

void AddStepOptions(CLI::App& app, PlanOptions& o, const std::string& iterations_help) {
  app.add_option("-s,--size", o.sizes,
                 "message bytes; suffixes K M G Ki Mi Gi are powers of 1024 (default: 64)")
      ->type_name("SIZE");
  app.add_option("-n,--iterations", o.iterations, iterations_help)->type_name("N");
  app.add_flag("--quick", o.quick, "fewer messages: a check that all works");
  AddPathOptions(app, o);
}

void AddTimedStepOptions(CLI::App& app, PlanOptions& o) {
  app.add_option("-s,--size", o.sizes,
                 "message bytes; suffixes K M G Ki Mi Gi are powers of 1024 (default: 64)")
      ->type_name("SIZE");
  app.add_option("-D,--duration", o.duration,
                 "measured time of each step (default: 1s, with --quick 100ms)")
      ->type_name("TIME");
  app.add_option("-q,--qps", o.qps, fmt::format("queue pairs (default: {})", kScaleQps))
      ->type_name("N");
  app.add_option("-t,--tx-depth", o.tx_depth,
                 fmt::format("messages in flight per queue pair (default: {})", kScaleTxDepth))
      ->type_name("N");
  app.add_flag("--quick", o.quick, "shorter steps: a check that all works");
  AddPathOptions(app, o);
}

namespace {

// Lists that one command alone takes, and that it chooses itself where none is given.
Status ParseLists(const PlanOptions& options, Plan& plan) {
  Status status =
      TakeOption(options.timer_codes, "--timer-codes", ParseTimerCodes, plan.timer_codes);
  if (status) status = TakeOption(options.cqs, "--cqs", ParseCounts, plan.cqs);
  if (status) status = TakeOption(options.cq_depths, "--cq-depth", ParseCounts, plan.cq_depths);
  if (!status) return status;
  plan.checks = options.checks;
  if (plan.command == kRnrTest) plan.timer_codes = TimerCodesOf(plan);
  if (plan.command == kCqScale) plan.cqs = CqsOf(plan);
  return {};
}

}  // namespace

Expected<Plan> MakePlan(const PlanOptions& options, const std::string& command) {
  Plan plan;
  plan.command = command;
  if (Status status = ParseShape(options, plan); !status) return Fail(std::move(status.error()));
  if (Status status = ParseTimes(options, plan); !status) return Fail(std::move(status.error()));
  if (!options.iterations.empty()) {
    Expected<uint64_t> iterations = ParseSize(options.iterations);
    if (!iterations) {
      return Fail(NameOption(std::move(iterations.error()), "--iterations", options.iterations));
    }
    plan.iterations = *iterations;
  } else if (const StepCommand* steps = FindStepCommand(command);
             steps != nullptr && !steps->timed) {
    plan.iterations = options.quick ? steps->quick_iterations : steps->iterations;
  }
  plan.quick = options.quick;
  if (Status status = ParseLists(options, plan); !status) return Fail(std::move(status.error()));
  if (options.signal_every != "auto") {
    Expected<uint64_t> every = ParseSize(options.signal_every);
    if (!every || *every == 0 || *every > kMaxSignalEvery) {
      return Fail(UsageError(fmt::format("--signal-every {} is not auto or a number from 1 to {}",
                                         options.signal_every, kMaxSignalEvery),
                             {}, "leave it out to signal as rarely as is safe"));
    }
    plan.signal_every = static_cast<uint32_t>(*every);
  }
  Expected<InlineMode> inline_mode = ParseInlineMode(options.inline_mode);
  if (!inline_mode) {
    return Fail(NameOption(std::move(inline_mode.error()), "--inline", options.inline_mode));
  }
  plan.inline_mode = *inline_mode;
  plan.post_list = options.post_list;
  plan.mtu_bytes = options.mtu_bytes;
  plan.timeout_code = options.timeout_code;
  plan.retry_count = options.retry_count;
  plan.rnr_timer_code = options.rnr_timer_code;
  plan.rnr_retry = options.rnr_retry;
  plan.rd_atomic = options.rd_atomic;
  plan.service_level = options.service_level;
  plan.traffic_class = options.traffic_class;
  plan.flow_label = options.flow_label;
  plan.pkey_index = options.pkey_index;
  plan.hop_limit = options.hop_limit;
  plan.repeat = options.repeat.value_or(1);
  if (command == kEventVsPoll) {
    if (Status modes = ParseModeOptions(options, plan); !modes) return Fail(modes.error());
  }
  Status status = Validate(plan);
  if (status) status = CheckCombination(plan);
  if (!status) {
    Error error = std::move(status.error());
    if (error.next_step.empty()) error.next_step = fmt::format("verbscope {} --help", command);
    return Fail(std::move(error));
  }
  if (plan.deadline_ns != 0 && plan.deadline_ns < PlannedNs(plan)) {
    return Fail(
        UsageError(fmt::format("--deadline {} is shorter than the plan itself, {}",
                               DurationText(plan.deadline_ns), DurationText(PlannedNs(plan))),
                   {},
                   command == kRnrTest ? "give a longer --deadline or fewer --timer-codes"
                                       : "give a longer --deadline or a shorter --duration"));
  }
  return plan;
}

}  // namespace verbscope
