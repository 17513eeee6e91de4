// `cq-scale`: the same queue pairs over more completion queues and threads, over one CQ that
// several threads share, and over deeper ones. The responder's part is its device's alone: WRITEs.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "core/host/affinity.h"
#include "core/loops/cq_workers.h"
#include "core/plan/cq_plan.h"
#include "core/scenario/lists.h"
#include "core/scenario/cq_threads.h"
#include "core/scenario/scenario.h"

namespace verbscope {
namespace {

constexpr const char* kSource =
    "ibv_poll_cq(3): wr_id as posted, qp_num of the request's queue pair; IBTA vol. 1, 10.8.6: "
    "completions of one queue in order";
// The other side waits for a whole point in one step.
constexpr std::chrono::nanoseconds kLongestDrain = std::chrono::seconds(4);

// How long what is in flight at the end has to come.
std::chrono::nanoseconds DrainTime(const Stage& stage) {
  return std::min(stage.CompletionLimit(), kLongestDrain);
}

// What the points of one run compare themselves with, in the order in which they run.
struct Baseline {
  double rate_per_s = 0;  // of one thread at one CQ; 0: not measured
};

std::string NameOf(const ScalePoint& point) {
  std::string name = fmt::format("cqs-{}-threads-{}", point.cqs, point.threads);
  if (point.cq_depth > 0) name += fmt::format("-depth-{}", point.cq_depth);
  if (point.run > 0) name += "-again";
  return name;
}

QpSetOptions OptionsOf(const Stage& stage, const ScalePoint& point) {
  const Plan& plan = stage.plan();
  const uint32_t least = LeastCqDepth(plan, point.cqs);
  return {.qps = plan.qps,
          .cqs = stage.requester() ? point.cqs : 1,
          .cqe = !stage.requester()   ? 1
                 : point.cq_depth > 0 ? point.cq_depth
                                      : least,
          .send_depth = stage.requester() ? plan.tx_depth : 1,
          .size_bytes = stage.size_bytes()};
}

std::string MismatchText(const CqMismatch& mismatch) {
  const std::string where = fmt::format("wr_id 0x{:016x}: ", mismatch.wr_id);
  switch (mismatch.kind) {
    case CqMismatch::Kind::kWrId:
      return where + fmt::format("it names queue pair {}, which has no request in this CQ",
                                 mismatch.qp_index);
    case CqMismatch::Kind::kQpNum:
      return where + fmt::format(
                         "it names queue pair {}, whose qp_num is 0x{:x}, but qp_num is "
                         "0x{:x}",
                         mismatch.qp_index, mismatch.expected, mismatch.got);
    case CqMismatch::Kind::kOpcode:
      return where + fmt::format("opcode is {}, expected {}", mismatch.got, mismatch.expected);
    case CqMismatch::Kind::kInFlight:
      return where + fmt::format(
                         "request {} of queue pair {} is not in flight: it completed "
                         "twice, or was never posted",
                         mismatch.got, mismatch.qp_index);
    case CqMismatch::Kind::kOrder:
      return where + fmt::format("request {} of queue pair {} completed, expected {}", mismatch.got,
                                 mismatch.qp_index, mismatch.expected);
    case CqMismatch::Kind::kNone:
      break;
  }
  return where + "it is wrong";
}

// The work of one point: the objects of both phases, and what came out of them.
class ScaleRun {
 public:
  ScaleRun(Stage& stage, QpSet& set, const ScalePoint& point)
      : stage_(stage), set_(set), point_(point), ledger_(set.size(), stage.plan().tx_depth) {
    for (uint32_t i = 0; i < point.cqs; ++i) cqs_.push_back(set.cq(i));
    for (uint32_t i = 0; i < set.size(); ++i) {
      qps_.push_back(set.qp(i));
      requests_.push_back(set.Request(i, IBV_WR_RDMA_WRITE));
    }
  }

  CqWorkersOutcome Phase(int64_t ns) {
    const TickScale scale = stage_.clock().scale();
    const auto drain = DrainTime(stage_);
    return RunCqWorkers({.cqs = cqs_,
                         .qps = qps_,
                         .requests = requests_,
                         .threads = point_.threads,
                         .phase = phase_++,
                         .ticks = scale.Ticks(static_cast<uint64_t>(ns)),
                         .drain_ticks = scale.Ticks(static_cast<uint64_t>(drain.count())),
                         .ledger = &ledger_,
                         .stop = &stage_.stop()},
                        stage_.clock());
  }

  // A run that broke, as opposed to a device that answered wrongly.
  Status Broken(const CqWorkersOutcome& outcome) const {
    if (outcome.threads_failed) {
      return Fail(CallError(ErrorClass::kSetup, "pthread_create",
                            fmt::format("{} threads", point_.threads), outcome.post_errno));
    }
    switch (outcome.end) {
      case LoopEnd::kStopped:
        return stage_.Stopped();
      case LoopEnd::kSendFailed:
      case LoopEnd::kRecvFailed:
        return Fail(set_.Explain(outcome.failure, QpIndexOf(outcome.failure.wr_id) % set_.size(),
                                 "RDMA WRITE", outcome.messages + 1));
      case LoopEnd::kPostFailed:
        return Fail(CallError(ErrorClass::kRun, "ibv_post_send",
                              fmt::format("request {}", outcome.messages + 1), outcome.post_errno));
      case LoopEnd::kPollFailed:
        return Fail(CallError(ErrorClass::kRun, "ibv_poll_cq", stage_.device().info().name, EIO));
      case LoopEnd::kComplete:
      case LoopEnd::kMismatch:
        break;
    }
    return {};
  }

 private:
  Stage& stage_;
  QpSet& set_;
  const ScalePoint point_;
  RequestLedger ledger_;
  std::vector<ibv_cq*> cqs_;
  std::vector<ibv_qp*> qps_;
  std::vector<ibv_send_wr> requests_;
  uint32_t phase_ = 0;
};

std::string QueuesText(const ScalePoint& point, uint32_t qps) {
  return fmt::format("{} queue pair{} on {} CQ{} by {} thread{}", qps, qps == 1 ? "" : "s",
                     point.cqs, point.cqs == 1 ? "" : "s", point.threads,
                     point.threads == 1 ? "" : "s");
}

std::string WhyBad(CqMismatch::Kind kind) {
  switch (kind) {
    case CqMismatch::Kind::kWrId:
    case CqMismatch::Kind::kQpNum:
      return "a program would have taken another queue pair's completion for its own";
    case CqMismatch::Kind::kOrder:
      return "a completion before it is missing, or came later than it";
    case CqMismatch::Kind::kInFlight:
      return "a program would have taken a request for done that is not";
    case CqMismatch::Kind::kOpcode:
    case CqMismatch::Kind::kNone:
      break;
  }
  return "the completion does not describe the request";
}

CheckRow RowOf(const Stage& stage, const ScalePoint& point, const CqWorkersOutcome& outcome) {
  CheckRow row{.name = stage.name(),
               .status = "fail",
               .expected =
                   "every request completes once, in the CQ of its queue pair, wr_id and "
                   "qp_num naming the same one",
               .source = kSource};
  if (outcome.end == LoopEnd::kMismatch) {
    row.observed = MismatchText(outcome.mismatch);
    row.why = WhyBad(outcome.mismatch.kind);
  } else if (outcome.never_came > 0) {
    row.observed =
        fmt::format("{} of {} completions did not come within {}", outcome.never_came,
                    outcome.never_came + outcome.messages, DurationText(DrainTime(stage).count()));
    row.why = "completions were lost";
  } else {
    row.status = "pass";
    row.observed = fmt::format("{} completions of {}, each once and of its queue pair",
                               outcome.messages, QueuesText(point, stage.plan().qps));
  }
  return row;
}

Result ResultOf(const Stage& stage, const ScalePoint& point, const QpSet& set,
                const CqWorkersOutcome& outcome, Baseline& baseline) {
  Result result;
  result.point.op = "write";
  result.point.size_bytes = stage.size_bytes();
  result.point.qps = stage.plan().qps;
  result.point.cqs = point.cqs;
  result.point.threads = point.threads;
  if (point.cq_depth > 0) result.point.cq_depth = point.cq_depth;
  result.point.wait = ToText(WaitMode{});
  result.point.tx_depth = stage.plan().tx_depth;
  result.side = "requester";
  result.run = point.run;
  const double seconds = static_cast<double>(stage.clock().scale().Nanoseconds(
                             outcome.last_ticks - outcome.first_ticks)) *
                         1e-9;
  const auto messages = static_cast<double>(outcome.messages);
  BandwidthMetrics bandwidth;
  bandwidth.bytes = outcome.messages * stage.size_bytes();
  bandwidth.messages = outcome.messages;
  bandwidth.seconds = seconds;
  CpuMetrics cpu;
  cpu.cpu_s = static_cast<double>(outcome.usage.cpu_ns) * 1e-9;
  cpu.voluntary_switches = static_cast<uint64_t>(outcome.usage.voluntary_switches);
  cpu.involuntary_switches = static_cast<uint64_t>(outcome.usage.involuntary_switches);
  ScaleMetrics scale{
      .threads = point.threads, .cqe = set.cqe(), .cores = static_cast<uint32_t>(UsableCpuCount())};
  if (seconds > 0 && outcome.messages > 0) {
    bandwidth.msg_per_s = messages / seconds;
    bandwidth.gbit_per_s = static_cast<double>(bandwidth.bytes) * 8e-9 / seconds;
    cpu.utilization = cpu.cpu_s / seconds;
    cpu.us_per_message = scale.cpu_us_per_message = cpu.cpu_s * 1e6 / messages;
    scale.completions_per_poll =
        messages / static_cast<double>(std::max<uint64_t>(outcome.polls, 1));
    const bool reference = point.cqs == 1 && point.threads == 1 && point.cq_depth == 0;
    if (reference && point.run == 0) baseline.rate_per_s = *bandwidth.msg_per_s;
    if (baseline.rate_per_s > 0) scale.speedup = *bandwidth.msg_per_s / baseline.rate_per_s;
  }
  result.metrics.bandwidth = bandwidth;
  result.metrics.cpu = cpu;
  result.metrics.scale = scale;
  return result;
}

Status Measure(Stage& stage, const ScalePoint& point, Baseline& baseline) {
  Expected<QpSet*> set = stage.MakeQpSet(OptionsOf(stage, point));
  if (!set) return Fail(std::move(set.error()));
  if (Status status = (*set)->Connect(); !status) return status;
  ScaleRun run(stage, **set, point);
  CqWorkersOutcome outcome = run.Phase(ScaleWarmupNs(stage.plan()));
  if (outcome.end == LoopEnd::kComplete && outcome.never_came == 0) {
    outcome = run.Phase(stage.plan().duration_ns);
    if (Status status = run.Broken(outcome); !status) return status;
    Result result = ResultOf(stage, point, **set, outcome, baseline);
    result.complete = outcome.end == LoopEnd::kComplete && outcome.never_came == 0;
    stage.Keep(std::move(result));
  } else if (Status status = run.Broken(outcome); !status) {
    return status;
  }
  stage.Check(RowOf(stage, point, outcome));
  return stage.Meet("measured");
}

// This side's device serves WRITEs without its program.
Status Serve(Stage& stage, const ScalePoint& point) {
  Expected<QpSet*> set = stage.MakeQpSet(OptionsOf(stage, point));
  if (!set) return Fail(std::move(set.error()));
  if (Status status = (*set)->Connect(); !status) return status;
  return stage.Meet("measured");
}

void NoteCores(Stage& stage, const std::vector<ScalePoint>& points) {
  const auto cores = static_cast<uint32_t>(UsableCpuCount());
  const uint32_t most = std::ranges::max(points, {}, &ScalePoint::threads).threads;
  if (most <= cores) return;
  stage.Notice(fmt::format(
      "{} threads on {} usable CPU{}: whatever the CQs do, the speed-up is bounded by the CPUs",
      most, cores, cores == 1 ? "" : "s"));
}

}  // namespace

std::vector<Scenario> CqScaleScenarios(const Plan& plan) {
  std::vector<Scenario> scenarios = {CqThreads()};
  const std::vector<ScalePoint> points = ScalePointsOf(plan);
  const auto baseline = std::make_shared<Baseline>();
  for (const ScalePoint& point : points) {
    const bool first = scenarios.size() == 1;
    scenarios.push_back({.name = NameOf(point),
                         .requester =
                             [point, points, baseline, first](Stage& stage) {
                               if (first) NoteCores(stage, points);
                               return Measure(stage, point, *baseline);
                             },
                         .responder = [point](Stage& stage) { return Serve(stage, point); }});
  }
  return scenarios;
}

}  // namespace verbscope
