#include "core/scenario/rnr_timers.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/scenario/expectations.h"
#include "core/scenario/rnr_attempt.h"

namespace verbscope {
namespace {

constexpr const char* kSource =
    "IBTA vol. 1, 9.7.5.2.8: the timer of an RNR NAK is the shortest time until the next try";

// Two clocks are compared, this host's and the device's.
constexpr double kClockTolerance = 1e-3;

std::string NaksText(const RnrMetrics& rnr) {
  uint64_t naks = 0;
  for (const RnrAttempt& attempt : rnr.attempts) {
    if (!attempt.naks) return "NAKs not counted by the device";
    naks += *attempt.naks;
  }
  return fmt::format("{} NAKs in {} attempts", naks, rnr.attempts.size());
}

std::string EarlyText(const RnrAttempt& early) {
  return fmt::format("rnr_retry {} ended after {}, before {} of waits can have been over",
                     early.rnr_retry, MillisecondsText(early.time_to_error_ns.value_or(0)),
                     MillisecondsText(early.predicted_ns));
}

}  // namespace

std::optional<int64_t> OneWaitNs(std::span<const RnrAttempt> attempts) {
  std::map<uint32_t, int64_t> shortest;
  for (const RnrAttempt& attempt : attempts) {
    if (!attempt.time_to_error_ns) continue;
    const auto [row, fresh] = shortest.try_emplace(attempt.rnr_retry, *attempt.time_to_error_ns);
    if (!fresh) row->second = std::min(row->second, *attempt.time_to_error_ns);
  }
  if (shortest.size() < 2) return std::nullopt;
  const auto count = static_cast<double>(shortest.size());
  double mean_retry = 0;
  double mean_ns = 0;
  for (const auto& [retry, ns] : shortest) {
    mean_retry += retry / count;
    mean_ns += static_cast<double>(ns) / count;
  }
  double above = 0;
  double below = 0;
  for (const auto& [retry, ns] : shortest) {
    above += (retry - mean_retry) * (static_cast<double>(ns) - mean_ns);
    below += (retry - mean_retry) * (retry - mean_retry);
  }
  return std::llround(above / below);
}

void Conclude(RnrMetrics& rnr) {
  rnr.measured_ns = OneWaitNs(rnr.attempts);
  rnr.ratio.reset();
  if (!rnr.measured_ns) return;
  rnr.ratio = static_cast<double>(*rnr.measured_ns) / static_cast<double>(rnr.nominal_ns);
}

std::optional<RnrAttempt> TooEarly(std::span<const RnrAttempt> attempts, int64_t short_ns) {
  for (const RnrAttempt& attempt : attempts) {
    const double least = static_cast<double>(attempt.predicted_ns) * (1 - kClockTolerance) -
                         static_cast<double>(short_ns) * attempt.rnr_retry;
    if (attempt.time_to_error_ns && static_cast<double>(*attempt.time_to_error_ns) < least) {
      return attempt;
    }
  }
  return std::nullopt;
}

void JudgeWaits(std::string_view device_kind, const RnrMetrics& rnr, CheckRow& row) {
  row.source = kSource;
  row.expected = fmt::format("each wait {} or longer", MillisecondsText(rnr.nominal_ns));
  const WaitLimits& limits = WaitLimitsOf(device_kind);
  if (const std::optional<RnrAttempt> early = TooEarly(rnr.attempts, limits.short_ns)) {
    row.status = "fail";
    row.observed = EarlyText(*early);
    row.why = "the sender waits less than the receiver asks for, and gives up too soon";
    return;
  }
  if (!rnr.measured_ns) {
    row.status = "fail";
    row.observed = "the error did not come";
    return;
  }
  row.status = "pass";
  row.observed =
      fmt::format("{} a wait, {:.3g} times its timer; {}", MillisecondsText(*rnr.measured_ns),
                  rnr.ratio.value_or(0), NaksText(rnr));
  const std::optional<RnrAttempt> early = TooEarly(rnr.attempts, 0);
  if (early) row.observed += "; " + EarlyText(*early);
  if (!early && *rnr.measured_ns <= LongestNs(WaitLimitsOf(""), rnr.nominal_ns)) return;
  row.status = "deviation";
  row.why = *rnr.measured_ns <= LongestNs(limits, rnr.nominal_ns)
                ? std::string(limits.why)
                : "longer than known of this device; allowed, since the timer is a minimum: a "
                  "busy host, or a coarse timer";
}

}  // namespace verbscope
