#include "core/cost/cost_meter.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/plan/operation.h"
#include "core/plan/plan.h"
#include "core/record/percentile.h"
#include "core/session/latency_metrics.h"

namespace verbscope {
namespace {

LatencyMetrics CallTimes(const Histogram& histogram) {
  Operation call;
  call.definition = "call";
  call.ended_by = "return";
  return MakeLatencyMetrics(histogram, call);
}

}  // namespace

Status CostLimits::Check() const {
  Error error;
  if (interrupt.raised()) {
    error.error_class = ErrorClass::kInterrupted;
    error.message = "interrupted by a signal; what was measured until then is in the report";
    error.next_step = "run it again, with --quick or fewer --verbs if it took too long";
    return Fail(std::move(error));
  }
  if (!deadline.Passed()) return {};
  error.error_class = ErrorClass::kDeadline;
  error.message = "the deadline of the whole command has passed";
  error.cause = "calls took longer than planned, or the machine is busy";
  error.next_step = "give --deadline a longer time, or measure fewer --verbs";
  return Fail(std::move(error));
}

CostMeter::Length CostMeter::WarmUpLength() const {
  return {.calls = plan_.warmup_calls,
          .ticks = clock_.scale().Ticks(static_cast<uint64_t>(plan_.row_ns / 10))};
}

CostMeter::Length CostMeter::RowLength() const {
  return {.calls = plan_.calls, .ticks = clock_.scale().Ticks(static_cast<uint64_t>(plan_.row_ns))};
}

void CostMeter::BeginRow() {
  warmup_.Reset();
  samples_.Reset();
  counted_.clear();
  counted_.reserve(kCountedCalls);
}

CostMetrics CostMeter::MakeCost(uint64_t work) const {
  CostMetrics cost;
  cost.calls = samples_.count();
  cost.per_call_work = work;
  cost.overhead_ns = overhead_ns_;
  if (counted_.empty()) return cost;
  std::vector<uint64_t> calls;
  bool whole = true;
  for (const SyscallCount& count : counted_) {
    calls.push_back(count.calls);
    whole = whole && count.complete;
  }
  std::ranges::nth_element(calls, calls.begin() + static_cast<std::ptrdiff_t>(calls.size() / 2));
  const uint64_t median = calls[calls.size() / 2];
  if (median > 0 || whole) cost.enters_kernel = median > 0;
  if (!whole) return cost;
  cost.syscalls_per_call = median;
  cost.syscalls_at_most = std::ranges::max(calls);
  return cost;
}

void CostMeter::EndRow(const CostRow& row, bool complete) {
  if (samples_.count() == 0) {
    if (complete) Skip(row.point.op, "no call of it did what it was made for, so none was timed");
    return;
  }
  Result result;
  result.point = row.point;
  result.complete = complete;
  Metrics& metrics = result.metrics;
  metrics.latency = CallTimes(samples_);
  if (warmup_.count() > 0) metrics.warmup = CallTimes(warmup_);
  metrics.cost = MakeCost(row.work);
  if (const auto median = AtPercent(*metrics.latency, "50")) {
    metrics.cost->ns_per_request = static_cast<double>(*median) / static_cast<double>(row.work);
  }
  record_.results.push_back(std::move(result));
}

Status CostMeter::MeasureOverhead() {
  CostRow row;
  row.point.op = "empty_timing";
  row.point.wait = "busy";
  Status status = Measure(
      row, [] { return Status(); }, [] {}, []() -> Expected<bool> { return true; });
  if (!status || record_.results.empty()) return status;
  Metrics& metrics = record_.results.back().metrics;
  overhead_ns_ = AtPercent(*metrics.latency, "50");
  metrics.cost->overhead_ns = overhead_ns_;
  return status;
}

void CostMeter::Skip(std::string name, std::string why) {
  CheckRow check{.name = std::move(name), .status = "skip", .why = std::move(why)};
  const auto same = [&check](const CheckRow& other) { return other.name == check.name; };
  if (std::ranges::none_of(record_.checks, same)) record_.checks.push_back(std::move(check));
}

}  // namespace verbscope
