#include "core/plan/rnr_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "core/causes/rc_timers.h"
#include "core/plan/input_text.h"

namespace verbscope {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kLongTimerNs = 100 * kMs;
// A timer in ticks of 4 ms, rounded up and started between two of them.
constexpr int64_t kCoarseTimerNs = 8 * kMs;
constexpr int64_t kPairNs = 10 * kMs;  // one pair of queue pairs, made and connected
constexpr int64_t kLateNs = 5 * kMs;
constexpr int64_t kMostPatienceNs = 2'000 * kMs;

int64_t WaitNs(uint32_t timer_code) { return RnrTimerNs(timer_code) + kCoarseTimerNs; }

tl::unexpected<Error> BadCodes(std::string_view text) {
  return Fail(UsageError(fmt::format("{} is neither all nor a list of timer codes from 0 to {}",
                                     Quoted(text), kRnrTimerCodes - 1),
                         {}, "write them as 1,12-14"));
}

bool TakeCode(std::string_view& rest, uint64_t& code) {
  return TakeDigits(rest, code) && code < kRnrTimerCodes;
}

__int128 SweepNs(const Plan& plan) {
  __int128 total = 0;
  for (const uint32_t code : TimerCodesOf(plan)) {
    const TimerSweep sweep = SweepOf(code, plan.quick);
    for (const uint32_t retry : sweep.retries) {
      total += (__int128{WaitNs(code)} * retry + kPairNs) * sweep.repeats;
    }
  }
  return total;
}

__int128 RecoveryNs(const Plan& plan) {
  const uint64_t rounds = RecoveryRounds(plan);
  const int64_t later_ns = kLateNs + RnrTimerNs(plan.rnr_timer_code) + WaitNs(plan.rnr_timer_code);
  return RecoveryDelayNs(plan, 0) + __int128{later_ns} * rounds + kPairNs;
}

}  // namespace

Expected<std::vector<uint32_t>> ParseTimerCodes(std::string_view text) {
  std::vector<uint32_t> codes;
  const auto add = [&codes](uint64_t code) {
    const auto narrow = static_cast<uint32_t>(code);
    if (std::ranges::find(codes, narrow) == codes.end()) codes.push_back(narrow);
  };
  if (text == "all") {
    for (uint32_t code = 0; code < kRnrTimerCodes; ++code) add(code);
    return codes;
  }
  for (std::string_view rest = text;; rest.remove_prefix(1)) {
    uint64_t first = 0;
    if (!TakeCode(rest, first)) return BadCodes(text);
    uint64_t last = first;
    if (rest.starts_with('-')) {
      rest.remove_prefix(1);
      if (!TakeCode(rest, last) || last < first) return BadCodes(text);
    }
    for (uint64_t code = first; code <= last; ++code) add(code);
    if (rest.empty()) return codes;
    if (rest.front() != ',') return BadCodes(text);
  }
}

std::vector<uint32_t> TimerCodesOf(const Plan& plan) {
  if (!plan.timer_codes.empty()) return plan.timer_codes;
  if (plan.quick) return {1, 12, 16};
  return {1, 8, 12, 16, 20, 24, 0};
}

TimerSweep SweepOf(uint32_t timer_code, bool quick) {
  if (RnrTimerNs(timer_code) > kLongTimerNs) return {.retries = {1, 2}};
  if (quick) return {.retries = {1, kLastFiniteRetry}, .repeats = 2};
  // The shortest of several times is free of most of what else the host did.
  return {.retries = {1, 2, 3, 4, 5, 6},
          .repeats = RnrTimerNs(timer_code) < kCoarseTimerNs ? 3U : 1U};
}

uint64_t RecoveryRounds(const Plan& plan) {
  const int64_t most = std::max<int64_t>(3, 3'000 * kMs / (kLateNs + WaitNs(plan.rnr_timer_code)));
  const uint64_t asked = plan.iterations.value_or(1);
  // Short timers take any number that was asked for.
  return RnrTimerNs(plan.rnr_timer_code) <= kLongTimerNs
             ? asked
             : std::min(asked, static_cast<uint64_t>(most));
}

int64_t RecoveryDelayNs(const Plan& plan, uint64_t round) {
  const int64_t timer_ns = RnrTimerNs(plan.rnr_timer_code);
  if (round == 0) {
    return std::min(WaitNs(plan.rnr_timer_code) * (kLastFiniteRetry + 2), kMostPatienceNs);
  }
  return kLateNs + timer_ns / 100 * static_cast<int64_t>(round * 37 % 100);
}

std::vector<uint32_t> StarvedCodes(const Plan& plan) {
  const std::vector<uint32_t> codes = TimerCodesOf(plan);
  const auto [shortest, longest] =
      std::ranges::minmax_element(codes, {}, [](uint32_t code) { return RnrTimerNs(code); });
  if (*shortest == *longest) return {*shortest};
  return {*shortest, *longest};
}

uint32_t StarvedBatches(uint32_t timer_code, bool quick) {
  const int64_t waits =
      std::clamp<int64_t>(1'000 * kMs / RnrTimerNs(timer_code), 3, quick ? 8 : 20);
  return static_cast<uint32_t>(waits) + 1;
}

int64_t RnrTestPlannedNs(const Plan& plan) {
  __int128 total = SweepNs(plan) + RecoveryNs(plan);
  for (uint32_t retry = 0; retry <= kLastFiniteRetry; ++retry) {
    total += __int128{WaitNs(plan.rnr_timer_code)} * retry + kPairNs;
  }
  for (const uint32_t code : StarvedCodes(plan)) {
    total += __int128{WaitNs(code)} * StarvedBatches(code, plan.quick) + kPairNs;
  }
  // Starvation with an end, and the WRITE with immediate.
  total += WaitNs(plan.rnr_timer_code) + kPairNs;
  total +=
      __int128{WaitNs(plan.rnr_timer_code)} * std::min(plan.rnr_retry, kLastFiniteRetry) + kPairNs;
  return static_cast<int64_t>(std::min<__int128>(total, std::numeric_limits<int64_t>::max()));
}

}  // namespace verbscope
