#include "core/plan/cq_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <set>

#include "core/plan/input_text.h"

namespace verbscope {
namespace {

constexpr int64_t kPointNs = 50'000'000;     // queue pairs made and connected, per point
constexpr int64_t kThreadsNs = 500'000'000;  // cq-threads
constexpr uint32_t kThreadsMessages = 1000;  // per queue pair
constexpr uint32_t kThreadsQuickMessages =
    200;  // a receive is posted for each: below any max_qp_wr

Status CheckCounts(const std::vector<uint32_t>& counts, std::string_view field,
                   std::string_view option, uint32_t most) {
  if (counts.size() > kMaxCqRows) {
    return Fail(UsageError(fmt::format("{} ({}) holds {} numbers, more than {}", field, option,
                                       counts.size(), kMaxCqRows)));
  }
  std::set<uint32_t> seen;
  for (const uint32_t count : counts) {
    if (count < 1 || count > most) {
      return Fail(
          UsageError(fmt::format("{} ({}) is {}, outside 1 to {}", field, option, count, most)));
    }
    if (!seen.insert(count).second) {
      return Fail(UsageError(fmt::format("{} ({}) holds {} twice", field, option, count)));
    }
  }
  return {};
}

Status CheckScale(const Plan& plan) {
  for (const uint32_t cqs : CqsOf(plan)) {
    if (cqs <= plan.qps) continue;
    return Fail(UsageError(
        fmt::format("--cqs {}: with {} queue pairs some CQs would have none", cqs, plan.qps), {},
        "raise --qps, or leave that number out of --cqs"));
  }
  const uint32_t least = LeastCqDepth(plan, 1);
  for (const uint32_t depth : plan.cq_depths) {
    if (depth >= least) continue;
    return Fail(UsageError(
        fmt::format("--cq-depth {}: {} queue pairs with {} requests in flight need {} entries, or "
                    "the CQ overruns",
                    depth, plan.qps, plan.tx_depth, least),
        {},
        "give a greater --cq-depth or a lower --qps or --tx-depth; cq-overrun shows an overrun"));
  }
  if (plan.duration_ns > kMostScaleDurationNs) {
    return Fail(
        UsageError(fmt::format("--duration {}: cq-scale measures each point for {} at most",
                               DurationText(plan.duration_ns), DurationText(kMostScaleDurationNs)),
                   {}, "give a shorter --duration"));
  }
  return {};
}

}  // namespace

Expected<std::vector<uint32_t>> ParseCounts(std::string_view text) {
  std::vector<uint32_t> counts;
  for (std::string_view rest = text;; rest.remove_prefix(1)) {
    uint64_t count = 0;
    if (!TakeDigits(rest, count) || count == 0 || count > UINT32_MAX ||
        (!rest.empty() && rest.front() != ',')) {
      return Fail(UsageError(fmt::format("{} is not a list of numbers", Quoted(text)), {},
                             "write them as 1,2,4"));
    }
    const auto narrow = static_cast<uint32_t>(count);
    if (std::ranges::find(counts, narrow) == counts.end()) counts.push_back(narrow);
    if (rest.empty()) return counts;
  }
}

std::vector<uint32_t> CqsOf(const Plan& plan) {
  if (!plan.cqs.empty()) return plan.cqs;
  std::vector<uint32_t> cqs;
  for (const uint32_t count : {1U, 2U, 4U}) {
    if (count <= plan.qps) cqs.push_back(count);
  }
  return cqs;
}

std::vector<ScalePoint> ScalePointsOf(const Plan& plan) {
  std::vector<ScalePoint> points = {{.cqs = 1, .threads = 1}};
  for (const uint32_t cqs : CqsOf(plan)) {
    if (cqs == 1) continue;
    points.push_back({.cqs = cqs, .threads = cqs});
    points.push_back({.cqs = 1, .threads = cqs});
  }
  for (const uint32_t depth : plan.cq_depths) {
    points.push_back({.cqs = 1, .threads = 1, .cq_depth = depth});
  }
  points.push_back({.cqs = 1, .threads = 1, .run = 1});
  return points;
}

uint32_t LeastCqDepth(const Plan& plan, uint32_t cqs) {
  const uint64_t qps = (uint64_t{plan.qps} + cqs - 1) / cqs;
  return static_cast<uint32_t>(std::min<uint64_t>(qps * plan.tx_depth, UINT32_MAX));
}

int64_t ScaleWarmupNs(const Plan& plan) { return plan.duration_ns / kScaleWarmupPart; }

int64_t CqScalePlannedNs(const Plan& plan) {
  const __int128 point = __int128{plan.duration_ns} + ScaleWarmupNs(plan) + kPointNs;
  const __int128 total = point * static_cast<int64_t>(ScalePointsOf(plan).size()) + kThreadsNs;
  return static_cast<int64_t>(std::min<__int128>(total, std::numeric_limits<int64_t>::max()));
}

Status CheckCqPlan(const Plan& plan) {
  if (Status status = CheckCounts(plan.cqs, "cqs", "--cqs", kMaxCqs); !status) return status;
  if (Status status = CheckCounts(plan.cq_depths, "cq_depths", "--cq-depth", kMaxCqDepth);
      !status) {
    return status;
  }
  if (plan.command == kCqScale) return CheckScale(plan);
  if (plan.command == kCqOverrun && plan.iterations.value_or(0) > kMostOverrunMessages) {
    return Fail(
        UsageError(fmt::format("--iterations {}: cq-overrun sends {} messages at most in one step",
                               *plan.iterations, kMostOverrunMessages),
                   {}, "give a smaller --iterations"));
  }
  if (plan.cqs.empty() && plan.cq_depths.empty()) return {};
  return Fail(UsageError(
      fmt::format("--cqs and --cq-depth: {} compares no completion queues", plan.command), {},
      "leave them out"));
}

uint32_t ThreadsMessages(const Plan& plan) {
  return plan.quick ? kThreadsQuickMessages : kThreadsMessages;
}

}  // namespace verbscope
