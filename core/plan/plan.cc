#include "core/plan/plan.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "core/plan/check_plan.h"
#include "core/plan/cq_plan.h"
#include "core/plan/input_text.h"
#include "core/plan/mode_plan.h"
#include "core/plan/operation.h"
#include "core/plan/rnr_plan.h"
#include "core/plan/step_commands.h"

namespace verbscope {
namespace {

constexpr size_t kMaxCommandBytes = 32;

struct FieldRange {
  std::string_view field;
  std::string_view option;
  uint64_t value;
  uint64_t low;
  uint64_t high;
};

Status Check(const FieldRange& range) {
  if (range.value >= range.low && range.value <= range.high) return {};
  return Fail(UsageError(fmt::format("{} ({}) is {}, outside {} to {}", range.field, range.option,
                                     range.value, range.low, range.high)));
}

Status CheckTime(std::string_view field, std::string_view option, int64_t ns, int64_t low_ns) {
  if (ns >= low_ns && ns <= kMaxDurationNs) return {};
  return Fail(
      UsageError(fmt::format("{} ({}) is {}, outside {} to {}", field, option, DurationText(ns),
                             DurationText(low_ns), DurationText(kMaxDurationNs))));
}

Status CheckCommand(const std::string& command) {
  const bool plain = std::all_of(command.begin(), command.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (plain && !command.empty() && command.size() <= kMaxCommandBytes) return {};
  return Fail(UsageError(fmt::format("command {} is not the name of a command", Quoted(command))));
}

Status CheckSizes(const std::vector<uint64_t>& sizes) {
  if (Status status = Check({"number of sizes_bytes", "-s", sizes.size(), 1, kMaxSizes}); !status) {
    return status;
  }
  std::set<uint64_t> seen;
  for (const uint64_t size : sizes) {
    if (Status status = Check({"sizes_bytes", "-s", size, 0, kMaxMessageBytes}); !status) {
      return status;
    }
    // Two results with one identity could not be told apart by whoever compares them.
    if (!seen.insert(size).second) {
      return Fail(UsageError(fmt::format("sizes_bytes (-s) holds {} twice", size)));
    }
  }
  return {};
}

Status CheckLengths(const Plan& plan) {
  if (Status status = Check({"iterations", "-n", plan.iterations.value_or(1), 1, kMaxIterations});
      !status) {
    return status;
  }
  if (Status status = Check(
          {"warmup_iterations", "--warmup", plan.warmup_iterations.value_or(0), 0, kMaxIterations});
      !status) {
    return status;
  }
  if (Status status = CheckTime("duration_ns", "-D", plan.duration_ns, 1); !status) return status;
  if (Status status = CheckTime("warmup_ns", "--warmup", plan.warmup_ns, 0); !status) return status;
  if (Status status = CheckTime("interval_ns", "--interval", plan.interval_ns, kMinIntervalNs);
      !status) {
    return status;
  }
  if (Status status = CheckTime("extend_to_ns", "--max-duration", plan.extend_to_ns, 0); !status) {
    return status;
  }
  return CheckTime("deadline_ns", "--deadline", plan.deadline_ns, 0);
}

Status CheckNumbers(const Plan& plan) {
  // RC with timeout 0 waits for a lost packet for ever, which looks like a hang; rnr-test has it
  // for its own purpose and bounds it by the deadline.
  const uint32_t lowest_timeout = plan.command == "rnr-test" ? 0 : 1;
  const FieldRange ranges[] = {
      {"qps", "-q", plan.qps, 1, kMaxQps},
      {"tx_depth", "-t", plan.tx_depth, 1, kMaxDepth},
      {"rx_depth", "-r", plan.rx_depth, 1, kMaxDepth},
      {"post_list", "-l", plan.post_list, 1, plan.tx_depth},
      {"signal_every", "--signal-every", plan.signal_every, 0, kMaxSignalEvery},
      {"timeout_code", "--timeout", plan.timeout_code, lowest_timeout, 31},
      {"retry_count", "--retry", plan.retry_count, 0, 7},
      {"rnr_timer_code", "--rnr-timer", plan.rnr_timer_code, 0, 31},
      {"rnr_retry", "--rnr-retry", plan.rnr_retry, 0, 7},
      {"rd_atomic", "--rd-atomic", plan.rd_atomic, 0, 255},
      {"service_level", "--sl", plan.service_level, 0, 15},
      {"traffic_class", "--traffic-class", plan.traffic_class, 0, 255},
      {"flow_label", "--flow-label", plan.flow_label, 0, (1u << 20) - 1},
      {"pkey_index", "--pkey-index", plan.pkey_index, 0, 65535},
      {"hop_limit", "--hop-limit", plan.hop_limit, 1, 255},
      {"repeat", "--repeat", plan.repeat, 1, kMaxRepeat},
  };
  for (const FieldRange& range : ranges) {
    if (Status status = Check(range); !status) return status;
  }
  return {};
}

Status CheckModes(const Plan& plan) {
  constexpr std::array<uint32_t, 6> kMtus = {0, 256, 512, 1024, 2048, 4096};
  if (std::find(kMtus.begin(), kMtus.end(), plan.mtu_bytes) == kMtus.end()) {
    return Fail(UsageError(
        fmt::format("mtu_bytes (-m) is {}, not 256, 512, 1024, 2048 or 4096", plan.mtu_bytes)));
  }
  if (plan.rate_per_s != 0 && !(plan.rate_per_s >= kMinRate && plan.rate_per_s <= kMaxRate)) {
    return Fail(
        UsageError(fmt::format("rate_per_s (--rate) is {}, outside {} to {} messages per second",
                               plan.rate_per_s, kMinRate, kMaxRate)));
  }
  const InlineMode& mode = plan.inline_mode;
  const bool has_bytes = mode.kind == InlineKind::kBytes;
  return Check({"inline", "-I", mode.bytes, has_bytes ? 1u : 0u, has_bytes ? kMaxInlineBytes : 0u});
}

Status CheckTimerCodes(const std::vector<uint32_t>& codes) {
  std::set<uint32_t> seen;
  for (const uint32_t code : codes) {
    if (Status status = Check({"timer_codes", "--timer-codes", code, 0, kRnrTimerCodes - 1});
        !status) {
      return status;
    }
    if (!seen.insert(code).second) {
      return Fail(UsageError(fmt::format("timer_codes (--timer-codes) holds {} twice", code)));
    }
  }
  return {};
}

template <class T>
Status CheckDistinct(std::string_view field, std::string_view option, const std::vector<T>& values,
                     size_t most) {
  if (Status status = Check({field, option, values.size(), 0, most}); !status) return status;
  for (auto value = values.begin(); value != values.end(); ++value) {
    if (std::find(values.begin(), value, *value) != value) {
      return Fail(UsageError(fmt::format("{} ({}) holds one entry twice", field, option)));
    }
  }
  return {};
}

Status CheckModePlan(const Plan& plan) {
  for (const Status& status :
       {CheckDistinct("modes", "--modes", plan.modes, kMaxModes),
        CheckDistinct("rates_per_s", "--rates", plan.rates_per_s, kMaxLoads),
        CheckDistinct("busy_shares_percent", "--rates", plan.busy_shares_percent, kMaxLoads),
        CheckDistinct("moderations", "--moderation", plan.moderations, kMaxModes),
        CheckTime("p99_limit_ns", "--p99", plan.p99_limit_ns, 0)}) {
    if (!status) return status;
  }
  for (const double rate : plan.rates_per_s) {
    if (!(rate >= kMinRate && rate <= kMaxRate)) {
      return Fail(UsageError(fmt::format("rates_per_s (--rates) holds {}, outside {} to {}", rate,
                                         kMinRate, kMaxRate)));
    }
  }
  for (const double share : plan.busy_shares_percent) {
    if (!(share >= 1 && share <= 100)) {
      return Fail(UsageError(
          fmt::format("busy_shares_percent (--rates) holds {}, outside 1 to 100", share)));
    }
  }
  return {};
}

Status CheckChanges(const std::vector<PlanChange>& changes) {
  if (changes.size() > kMaxChanges) {
    return Fail(UsageError(
        fmt::format("changes has {} entries, more than {}", changes.size(), kMaxChanges)));
  }
  for (const PlanChange& change : changes) {
    for (const std::string* text : {&change.field, &change.asked, &change.used, &change.why}) {
      if (text->size() > kMaxChangeTextBytes) {
        return Fail(UsageError(fmt::format("changes holds a text of {} bytes, more than {}",
                                           text->size(), kMaxChangeTextBytes)));
      }
    }
  }
  return {};
}

int64_t SaturatedNs(__int128 ns) {
  return static_cast<int64_t>(std::min<__int128>(ns, std::numeric_limits<int64_t>::max()));
}

tl::unexpected<Error> Refused(std::string message, std::string cause, std::string next_step) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = "plan refused: " + std::move(message);
  error.cause = std::move(cause);
  error.next_step = std::move(next_step);
  return Fail(std::move(error));
}

// What must be refused, because lowering it would measure something else.
Status CheckLimits(const Plan& plan, const ServerLimits& limits) {
  if (FindOperation(plan.command) == nullptr && FindStepCommand(plan.command) == nullptr &&
      plan.command != kEventVsPoll) {
    std::string known;
    for (const Operation& operation : Operations()) {
      known += (known.empty() ? "" : ", ") + std::string(operation.command);
    }
    for (const StepCommand& steps : StepCommands()) known += ", " + std::string(steps.command);
    known += ", " + std::string(kEventVsPoll);
    return Refused(fmt::format("no server runs {}", Quoted(plan.command)), "known are " + known,
                   "use the same version of verbscope on both sides");
  }
  if (Status status = CheckCombination(plan); !status) {
    return Refused(status.error().message, "the plan asks for something else",
                   "use the same version of verbscope on both sides");
  }
  uint64_t results = uint64_t{plan.repeat} * plan.sizes_bytes.size();
  if (plan.command == kEventVsPoll) results *= ModesOf(plan).size() * LoadsOf(plan).size();
  if (results > kMaxResults) {
    return Refused(fmt::format("{} results (points times repeats)", results),
                   fmt::format("one run gives at most {}", kMaxResults), "lower --repeat");
  }
  const uint64_t largest = *std::max_element(plan.sizes_bytes.begin(), plan.sizes_bytes.end());
  if (largest > limits.max_message_bytes) {
    return Refused(fmt::format("a message of {} bytes", largest),
                   fmt::format("the port takes at most {} bytes", limits.max_message_bytes),
                   "lower -s");
  }
  if (const int64_t planned_ns = PlannedNs(plan); planned_ns > limits.max_run_ns) {
    return Refused(fmt::format("it would run for {}", DurationText(planned_ns)),
                   fmt::format("this server runs at most {}", DurationText(limits.max_run_ns)),
                   plan.command == kRnrTest
                       ? "give fewer --timer-codes, or raise --max-run of serve"
                   : plan.extend_to_ns > plan.duration_ns
                       ? "lower --max-duration, --repeat or the list of sizes, or raise --max-run "
                         "of serve"
                       : "shorten -D, --repeat or the list of sizes, or raise --max-run of serve");
  }
  if (limits.max_qp_wr == 0) {
    return Refused("the device takes no work requests", "its limit max_qp_wr is 0",
                   "choose another device");
  }
  return {};
}

void Lower(uint32_t& value, uint32_t highest, std::string_view field, std::string_view why,
           std::vector<PlanChange>& changes) {
  if (value <= highest) return;
  changes.push_back(
      {std::string(field), fmt::format("{}", value), fmt::format("{}", highest), std::string(why)});
  value = highest;
}

void AdjustTimes(Plan& plan, const ServerLimits& limits) {
  const int64_t latest_ns =
      std::min(SaturatedNs(__int128{limits.max_run_ns} + kDeadlineGraceNs), kMaxDurationNs);
  if (plan.deadline_ns > latest_ns) {
    plan.changes.push_back({"deadline_ns", fmt::format("{}", plan.deadline_ns),
                            fmt::format("{}", latest_ns), "the server's longest run plus 30 s"});
    plan.deadline_ns = latest_ns;
  }
  const int64_t longest_ns = std::max(plan.iterations ? 0 : plan.duration_ns, plan.extend_to_ns);
  int64_t interval_ns = (longest_ns + kMaxIntervals - 1) / kMaxIntervals;
  if (plan.interval_ns >= interval_ns) return;
  // Whole milliseconds read better in a table than a quotient does.
  interval_ns = (interval_ns + kMinIntervalNs - 1) / kMinIntervalNs * kMinIntervalNs;
  plan.changes.push_back({"interval_ns", fmt::format("{}", plan.interval_ns),
                          fmt::format("{}", interval_ns),
                          fmt::format("a time series has at most {} rows", kMaxIntervals)});
  plan.interval_ns = interval_ns;
}

}  // namespace

Status Validate(const Plan& plan) {
  if (Status status = CheckCommand(plan.command); !status) return status;
  if (Status status = CheckSizes(plan.sizes_bytes); !status) return status;
  if (Status status = CheckLengths(plan); !status) return status;
  if (Status status = CheckNumbers(plan); !status) return status;
  if (Status status = CheckModes(plan); !status) return status;
  if (Status status = CheckTimerCodes(plan.timer_codes); !status) return status;
  if (Status status = CheckModePlan(plan); !status) return status;
  return CheckChanges(plan.changes);
}

int64_t PlannedNs(const Plan& plan) {
  if (plan.command == kRnrTest) return RnrTestPlannedNs(plan);
  if (plan.command == kEventVsPoll) return EventVsPollPlannedNs(plan);
  if (plan.command == kCqScale) return CqScalePlannedNs(plan);
  if (plan.command == kCheck) return CheckPlannedNs(plan);
  // What is counted takes a known time at a given rate only.
  const auto phase_ns = [&plan](const std::optional<uint64_t>& messages, int64_t ns) -> __int128 {
    if (!messages) return ns;
    if (plan.rate_per_s <= 0) return 0;
    return static_cast<__int128>(static_cast<double>(*messages) / plan.rate_per_s * 1e9);
  };
  const __int128 run_ns =
      std::max<__int128>(phase_ns(plan.iterations, plan.duration_ns), plan.extend_to_ns) +
      phase_ns(plan.warmup_iterations, plan.warmup_ns);
  return SaturatedNs(run_ns * static_cast<int64_t>(plan.sizes_bytes.size()) * plan.repeat);
}

int64_t EffectiveDeadlineNs(const Plan& plan) {
  if (plan.deadline_ns > 0) return plan.deadline_ns;
  return SaturatedNs(__int128{PlannedNs(plan)} + kDeadlineGraceNs);
}

uint64_t EstimatedMemoryBytes(const Plan& plan) {
  constexpr uint64_t kPageBytes = 4096;
  // A work queue entry of up to 128 bytes, a completion of 64, and our own slot beside them.
  constexpr uint64_t kQueueEntryBytes = 256;
  constexpr uint64_t kQpBytes = 16384;
  const uint64_t largest = plan.sizes_bytes.empty() ? 0
                                                    : *std::max_element(plan.sizes_bytes.begin(),
                                                                        plan.sizes_bytes.end());
  const auto buffer = (__int128{largest} + kPageBytes - 1) / kPageBytes * kPageBytes;
  const auto entries = __int128{plan.tx_depth} + plan.rx_depth;
  const bool steps = FindStepCommand(plan.command) != nullptr;
  const __int128 buffers =
      steps ? kStepBufferMessages * (buffer + kPageBytes) + kStepBufferBytes : 2 * buffer;
  const __int128 total = buffers + (entries * kQueueEntryBytes + kQpBytes) * plan.qps;
  return static_cast<uint64_t>(std::min<__int128>(total, std::numeric_limits<uint64_t>::max()));
}

Expected<Plan> Bound(const Plan& asked, const ServerLimits& limits) {
  if (Status status = Validate(asked); !status) {
    return Refused(status.error().message, status.error().cause, status.error().next_step);
  }
  if (Status status = CheckLimits(asked, limits); !status) return Fail(std::move(status.error()));
  Plan plan = asked;
  const std::string why =
      fmt::format("the device takes at most {} work requests per queue", limits.max_qp_wr);
  Lower(plan.tx_depth, limits.max_qp_wr, "tx_depth", why, plan.changes);
  Lower(plan.rx_depth, limits.max_qp_wr, "rx_depth", why, plan.changes);
  Lower(plan.post_list, plan.tx_depth, "post_list", "it cannot exceed tx_depth", plan.changes);
  Lower(plan.signal_every, std::max(1u, limits.max_qp_wr / 2), "signal_every",
        why + ", and two periods must fit", plan.changes);
  const Operation* operation = FindOperation(plan.command);
  if (operation != nullptr && operation->shape == LoopShape::kStream) {
    Lower(plan.signal_every, plan.tx_depth - plan.post_list + 1, "signal_every",
          "a queue without room for a list must hold a signalled request", plan.changes);
  }
  AdjustTimes(plan, limits);
  if (const uint64_t bytes = EstimatedMemoryBytes(plan); bytes > limits.max_memory_bytes) {
    return Refused(fmt::format("it needs about {} bytes of memory", bytes),
                   fmt::format("this server gives at most {} bytes", limits.max_memory_bytes),
                   "lower -s, -q, -t or -r, or raise --max-memory of serve");
  }
  if (Status status = Validate(plan); !status) return Fail(std::move(status.error()));
  return plan;
}

}  // namespace verbscope
