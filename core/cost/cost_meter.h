// Times the calls of one verb, one by one: two reads of the clock around each call and nothing else
// between them. What a call needs and what it leaves behind is done before and after, untimed.
// Warm-up calls have a histogram of their own; system calls are counted afterwards, on a few more
// calls, so that counting costs no timed call anything.
//
//   meter.Measure({.point = point, .work = 16},
//                 [&] { return MakeReady(16); },               // Status; untimed
//                 [&] { got = ibv_poll_cq(cq, 16, wc); },      // timed
//                 [&]() -> Expected<bool> { return got == 16; });  // untimed; false: no sample
//
// Owned by the run; the measuring thread. `record` must outlive it.
#ifndef VERBSCOPE_CORE_COST_COST_METER_H_
#define VERBSCOPE_CORE_COST_COST_METER_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/clock/clock.h"
#include "core/cost/cost_limits.h"
#include "core/cost/cost_plan.h"
#include "core/cost/syscall_counter.h"
#include "core/histogram/histogram.h"
#include "core/record/record.h"

namespace verbscope {

// What a row is of.
struct CostRow {
  Point point;
  uint64_t work = 1;  // requests, completions or events that one call is for
};

class CostMeter {
 public:
  // `counter` may be null: then nothing is known of system calls.
  CostMeter(const Clock& clock, const CostPlan& plan, const CostLimits& limits,
            SyscallCounter* counter, Record& record)
      : clock_(clock), plan_(plan), limits_(limits), counter_(counter), record_(record) {}

  // Adds a result to the record, or a skipped check if no call gave a sample. Fails when it is time
  // to stop or a step fails; a result that has samples by then is added as incomplete.
  template <class Prepare, class Call, class Finish>
  Status Measure(const CostRow& row, Prepare prepare, Call call, Finish finish) {
    if (Status status = limits_.Check(); !status) return status;
    BeginRow();
    Steps<Prepare, Call, Finish> steps{prepare, call, finish};
    Status status = Time(steps, WarmUpLength(), warmup_);
    if (status) status = Time(steps, RowLength(), samples_);
    if (status && samples_.count() > 0) status = Count(steps);
    EndRow(row, status.has_value());
    return status;
  }

  // The clock's own cost, the row of no call at all. Before every other row, which state it.
  Status MeasureOverhead();

  // What is not measured here, and why.
  void Skip(std::string name, std::string why);

  const CostLimits& limits() const { return limits_; }

 private:
  template <class Prepare, class Call, class Finish>
  struct Steps {
    Prepare& prepare;
    Call& call;
    Finish& finish;
  };
  // Ends with `calls` samples, or after `ticks` with kLeastCalls of them.
  struct Length {
    uint64_t calls = 0;
    uint64_t ticks = 0;
  };

  template <class AnySteps>
  Status Time(AnySteps& steps, Length length, Histogram& histogram) {
    return clock_.Dispatch(
        [&](auto counter) { return TimeCalls<decltype(counter)>(steps, length, histogram); });
  }

  template <class TickClock, class AnySteps>
  Status TimeCalls(AnySteps& steps, Length length, Histogram& histogram) {
    const TickScale scale = clock_.scale();
    const uint64_t least = std::min(length.calls, kLeastCalls);
    const uint64_t tries = kTriesPerCall * length.calls;
    const uint64_t begin = TickClock::Now();
    for (uint64_t i = 0; i < tries && histogram.count() < length.calls; ++i) {
      if (Status status = steps.prepare(); !status) return status;
      const uint64_t start = TickClock::Now();
      steps.call();
      const uint64_t end = TickClock::Now();
      const Expected<bool> counts = steps.finish();
      if (!counts) return Fail(counts.error());
      if (*counts) histogram.Record(scale.Nanoseconds(end - start));
      if (limits_.interrupted()) return limits_.Check();
      const bool enough = histogram.count() >= least || i >= kTriesPerCall * least;
      if (enough && end - begin > length.ticks) break;
    }
    return {};
  }

  template <class AnySteps>
  Status Count(AnySteps& steps) {
    if (counter_ == nullptr) return {};
    const Deadline end = Deadline::After(std::chrono::nanoseconds(plan_.row_ns / 10));
    for (size_t i = 0; i < kCountedCalls; ++i) {
      if (Status status = steps.prepare(); !status) return status;
      const SyscallCount count = counter_->Count([&steps] { steps.call(); });
      const Expected<bool> counts = steps.finish();
      if (!counts) return Fail(counts.error());
      if (*counts) counted_.push_back(count);
      if (limits_.interrupted()) return limits_.Check();
      if (end.Passed()) break;
    }
    return {};
  }

  Length WarmUpLength() const;
  Length RowLength() const;
  void BeginRow();
  void EndRow(const CostRow& row, bool complete);
  CostMetrics MakeCost(uint64_t work) const;

  // Calls that give no sample (fewer completions came than were asked for) are tried again.
  static constexpr uint64_t kTriesPerCall = 4;
  static constexpr size_t kCountedCalls = 33;

  const Clock& clock_;
  const CostPlan& plan_;
  const CostLimits& limits_;
  SyscallCounter* const counter_;
  Record& record_;
  std::optional<double> overhead_ns_;
  // Of the row that is being measured.
  Histogram warmup_;
  Histogram samples_;
  std::vector<SyscallCount> counted_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_COST_COST_METER_H_
