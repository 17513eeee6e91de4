#include "core/plan/mode_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "core/plan/input_text.h"
#include "core/plan/operation.h"

namespace verbscope {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kConnectNs =
    150 * kMs;  // endpoints made, connected and torn down; emulated hosts
constexpr uint32_t kStreamDepth = 128;
constexpr uint32_t kReceives = 512;
// More than any device answers: the rate that comes of it is the one that is sustained.
constexpr double kTooFast = 1e9;

// Calls take(element) for each element of "a,b,c"; the first failure ends it.
template <class Take>
Status ForEachElement(std::string_view text, Take take) {
  for (;;) {
    const size_t comma = text.find(',');
    if (Status status = take(text.substr(0, comma)); !status) return status;
    if (comma == std::string_view::npos) return {};
    text.remove_prefix(comma + 1);
  }
}

template <class T>
Status AddNew(std::vector<T>& values, T value, std::string_view text) {
  if (std::find(values.begin(), values.end(), value) != values.end()) {
    return Fail(
        UsageError(fmt::format("{} is in the list twice", Quoted(text)), {}, "give it once"));
  }
  values.push_back(std::move(value));
  return {};
}

Expected<double> Number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || rest != end || !(value >= 0)) return Fail(UsageError("not a number"));
  return value;
}

}  // namespace

std::string ToText(const Mode& mode) {
  return ToText(mode.wait) + (mode.moderation ? " " + ToText(*mode.moderation) : "");
}

bool IsReference(const Mode& mode) { return mode.wait.kind == WaitKind::kBusy; }

Expected<std::vector<WaitMode>> ParseModes(std::string_view text) {
  std::vector<WaitMode> modes;
  Status status = ForEachElement(text, [&modes](std::string_view element) -> Status {
    Expected<WaitMode> mode = ParseWaitMode(element);
    if (!mode) return Fail(std::move(mode.error()));
    return AddNew(modes, *mode, element);
  });
  if (!status) return Fail(std::move(status.error()));
  return modes;
}

Expected<double> ParseRatePerS(std::string_view text) {
  std::string_view digits = text;
  double factor = 1;
  if (!digits.empty()) {
    const char last = digits.back();
    if (last == 'k' || last == 'K') factor = 1e3;
    if (last == 'm' || last == 'M') factor = 1e6;
    if (factor != 1) digits.remove_suffix(1);
  }
  const Expected<double> number = Number(digits);
  const double rate = number ? *number * factor : 0;
  if (rate >= kMinRate && rate <= kMaxRate) return rate;
  return Fail(UsageError(fmt::format("{} is not a number of messages per second from {} to {}",
                                     Quoted(text), kMinRate, kMaxRate),
                         {}, "give a number, such as 100000 or 100K"));
}

Status ParseLoads(std::string_view text, Plan& plan) {
  plan.rates_per_s.clear();
  plan.busy_shares_percent.clear();
  return ForEachElement(text, [&plan](std::string_view element) -> Status {
    if (!element.ends_with('%')) {
      const Expected<double> rate = ParseRatePerS(element);
      if (!rate) return Fail(rate.error());
      return AddNew(plan.rates_per_s, *rate, element);
    }
    const Expected<double> share = Number(element.substr(0, element.size() - 1));
    if (share && *share >= 1 && *share <= 100) {
      return AddNew(plan.busy_shares_percent, *share, element);
    }
    return Fail(UsageError(fmt::format("{} is not a share from 1% to 100%", Quoted(element)), {},
                           "write it as 80%"));
  });
}

Expected<std::vector<Moderation>> ParseModerations(std::string_view text) {
  std::vector<Moderation> moderations;
  Status status = ForEachElement(text, [&moderations](std::string_view element) -> Status {
    Expected<Moderation> moderation = ParseModeration(element);
    if (!moderation) return Fail(std::move(moderation.error()));
    return AddNew(moderations, *moderation, element);
  });
  if (!status) return Fail(std::move(status.error()));
  return moderations;
}

void SetDefaultModes(Plan& plan) {
  plan.modes = {{.kind = WaitKind::kBusy},
                {.kind = WaitKind::kEvent},
                {.kind = WaitKind::kHybrid, .spin_ns = 20'000}};
}

void SetDefaultLoads(Plan& plan) {
  plan.rates_per_s = {1'000, 10'000};
  plan.busy_shares_percent = {80};
}

std::vector<Load> LoadsOf(const Plan& plan) {
  std::vector<Load> loads = {{.kind = LoadKind::kClosed}};
  std::vector<double> rates = plan.rates_per_s;
  std::vector<double> shares = plan.busy_shares_percent;
  std::ranges::sort(rates);
  std::ranges::sort(shares);
  for (const double rate : rates) loads.push_back({.kind = LoadKind::kOpen, .rate_per_s = rate});
  for (const double share : shares) {
    loads.push_back({.kind = LoadKind::kOpen, .busy_share_percent = share});
  }
  loads.push_back({.kind = LoadKind::kStream});
  return loads;
}

std::vector<Mode> ModesOf(const Plan& plan) {
  std::vector<Mode> modes;
  for (const WaitMode wait : plan.modes) modes.push_back({wait, std::nullopt});
  for (const Moderation moderation : plan.moderations) {
    modes.push_back({{.kind = WaitKind::kEvent}, moderation});
  }
  return modes;
}

std::vector<ModePoint> ModePointsOf(const Plan& plan) {
  const size_t modes = ModesOf(plan).size();
  const size_t loads = LoadsOf(plan).size();
  std::vector<ModePoint> points;
  for (uint32_t run = 0; run < plan.repeat; ++run) {
    for (size_t load = 0; load < loads; ++load) {
      for (size_t turn = 0; turn < modes; ++turn) {
        points.push_back({run, load, run % 2 == 0 ? turn : modes - 1 - turn});
      }
    }
  }
  return points;
}

Plan PlanOfPoint(const Plan& plan, const Load& load, const Mode& mode) {
  Plan point = plan;
  point.command = load.kind == LoadKind::kStream ? "send-bw" : "send-lat";
  point.repeat = 1;
  point.deadline_ns = EffectiveDeadlineNs(plan);
  point.modes = {mode.wait};
  point.moderations.clear();
  if (mode.moderation) point.moderations = {*mode.moderation};
  point.rates_per_s.clear();
  point.busy_shares_percent.clear();
  if (load.busy_share_percent > 0) point.busy_shares_percent = {load.busy_share_percent};
  switch (load.kind) {
    case LoadKind::kClosed:
      point.tx_depth = 1;
      point.rx_depth = std::min(kReceives, plan.rx_depth);
      break;
    case LoadKind::kOpen:
      point.rate_per_s = load.rate_per_s;
      break;
    case LoadKind::kStream:
      point.tx_depth = std::min(kStreamDepth, plan.tx_depth);
      point.rx_depth = std::min(kReceives, plan.rx_depth);
      break;
  }
  return point;
}

Plan PlanOfBusyRate(const Plan& plan) {
  return PlanOfPoint(plan, {.kind = LoadKind::kOpen, .rate_per_s = kTooFast}, {});
}

std::optional<Error> Unsuited(const Plan& plan, const Load& load, const Mode& mode) {
  Load any = load;
  if (any.kind == LoadKind::kOpen && any.rate_per_s == 0) any.rate_per_s = 1;
  const Plan point = PlanOfPoint(plan, any, mode);
  for (const bool requester : {true, false}) {
    if (Status status = CheckWait(point, requester, mode.wait); !status) return status.error();
  }
  return std::nullopt;
}

Status CheckModeOptions(const Plan& plan) {
  const std::string command(kEventVsPoll);
  if (plan.sizes_bytes.size() != 1) {
    return Fail(
        UsageError(fmt::format("--size: {} compares at one size", command), {}, "give one number"));
  }
  if (plan.iterations || plan.warmup_iterations) {
    return Fail(UsageError(
        fmt::format("{} measures each point for a time, not a number of messages", command), {},
        "use --duration and --warmup with times"));
  }
  const bool plain = plan.qps == 1 && plan.post_list == 1 && plan.rate_per_s == 0 && !plan.imm &&
                     !plan.bidirectional && !plan.verify;
  if (!plain) {
    return Fail(
        UsageError(fmt::format("{} chooses queue pairs, lists and operations itself", command), {},
                   "leave those options out; --rates says how fast"));
  }
  if (plan.modes.empty()) {
    return Fail(
        UsageError("--modes: there is nothing to compare", {}, "give two or more ways of waiting"));
  }
  if (plan.rates_per_s.size() + plan.busy_shares_percent.size() > kMaxLoads) {
    return Fail(
        UsageError(fmt::format("--rates: more than {} loads", kMaxLoads), {}, "give fewer"));
  }
  if (plan.rx_depth < plan.tx_depth || plan.rx_depth < 2) {
    return Fail(UsageError(fmt::format("--rx-depth {} is less than the {} messages that --tx-depth "
                                       "allows in flight, or less than 2",
                                       plan.rx_depth, plan.tx_depth),
                           {}, "leave both out"));
  }
  for (const double rate : plan.rates_per_s) {
    if (static_cast<double>(plan.duration_ns) * 1e-9 * rate > 1) continue;
    return Fail(UsageError(fmt::format("--rates {:g}: no message is due within {}", rate,
                                       DurationText(plan.duration_ns)),
                           {}, "raise the rate or --duration"));
  }
  return {};
}

int64_t JitterWatchNs(const Plan& plan) { return (plan.quick ? 100 : 500) * kMs; }

int64_t EventVsPollPlannedNs(const Plan& plan) {
  const __int128 point_ns = __int128{plan.duration_ns} + plan.warmup_ns + kConnectNs;
  __int128 points =
      static_cast<__int128>(ModesOf(plan).size() * LoadsOf(plan).size()) * plan.repeat;
  if (!plan.busy_shares_percent.empty()) points += 1;
  const __int128 total = points * point_ns + 2 * JitterWatchNs(plan);
  return static_cast<int64_t>(std::min<__int128>(total, std::numeric_limits<int64_t>::max()));
}

}  // namespace verbscope
