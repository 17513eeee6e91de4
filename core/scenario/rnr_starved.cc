#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/causes/completion_status.h"
#include "core/causes/rc_timers.h"
#include "core/plan/rnr_plan.h"
#include "core/record/record_json.h"
#include "core/scenario/message_check.h"
#include "core/scenario/rnr_attempt.h"
#include "core/scenario/rnr_steps.h"
#include "core/session/latency_metrics.h"

namespace verbscope {
namespace {

constexpr const char* kSource =
    "IBTA vol. 1, 9.7.5.2.8: with rnr_retry 7 a starved receiver is no error, and a wait each time";

constexpr std::chrono::milliseconds kLate(1);

class Starved {
 public:
  Starved(Stage& stage, uint32_t timer_code)
      : stage_(stage),
        code_(timer_code),
        total_(uint64_t{kStarvedReceives} * StarvedBatches(timer_code, stage.plan().quick)),
        limit_(RnrLimit(stage, timer_code, 1)),
        scale_(stage.clock().scale()) {}

  Status Run();

 private:
  Status Request();
  Status Respond();
  Status PostBatch(uint64_t first);
  // The next completion of this side; false: it is not as it should be.
  Expected<bool> Take(uint64_t number);
  void Report(const std::string& theirs);
  void Measured();

  Stage& stage_;
  const uint32_t code_;
  const uint64_t total_;
  const std::chrono::nanoseconds limit_;
  const TickScale scale_;
  FreshQp* qp_ = nullptr;
  Histogram histogram_;
  uint64_t done_ = 0;
  int64_t elapsed_ns_ = 0;
  std::optional<uint64_t> naks_;
  std::string wrong_;
};

Status Starved::Run() {
  Expected<FreshQp*> qp = MakeRnrQp(stage_, code_, kRnrRetryForever);
  if (!qp) return Fail(std::move(qp.error()));
  qp_ = *qp;
  if (!stage_.requester()) {
    if (Status status = PostBatch(0); !status) return status;
  }
  if (Status status = qp_->Connect(); !status) return status;
  if (Status status = stage_.requester() ? Request() : Respond(); !status) return status;
  Expected<nlohmann::json> peer = stage_.Swap({{"wrong", wrong_}});
  if (!peer) return Fail(std::move(peer.error()));
  if (!stage_.requester()) return {};
  const auto found = peer->find("wrong");
  Report(found != peer->end() && found->is_string()
             ? Printable(found->get_ref<const std::string&>(), 256)
             : std::string());
  Measured();
  return {};
}

Status Starved::Request() {
  std::vector<uint64_t> posted(total_);
  const DeviceCounters counters(stage_.device(), stage_.path().port.number);
  const uint64_t start = stage_.Now();
  uint64_t next = 0;
  while (done_ < total_) {
    for (; next < total_ && next - done_ < kStarvedInFlight; ++next) {
      posted[next] = stage_.Now();
      if (const int result = PostRnrSend(stage_, *qp_, IBV_WR_SEND, next); result != 0) {
        return Fail(CallError(ErrorClass::kRun, "ibv_post_send", stage_.name(), result));
      }
    }
    Expected<bool> good = Take(done_);
    const uint64_t now = stage_.Now();
    if (!good) return Fail(std::move(good.error()));
    if (!*good) break;
    histogram_.Record(scale_.Nanoseconds(now - posted[done_]));
    elapsed_ns_ = scale_.Nanoseconds(now - start);
    ++done_;
  }
  naks_ = NaksOf(counters);
  return {};
}

Status Starved::Respond() {
  while (done_ < total_) {
    Expected<bool> good = Take(done_);
    if (!good) return Fail(std::move(good.error()));
    if (!*good) break;
    ++done_;
    if (done_ % kStarvedReceives != 0 || done_ == total_) continue;
    // Late enough for the next message to find nothing, on any link.
    Expected<std::string> wrong = StayUnready(*qp_, kLate);
    if (!wrong) return Fail(std::move(wrong.error()));
    wrong_ = std::move(*wrong);
    if (!wrong_.empty()) break;
    if (Status status = PostBatch(done_); !status) return status;
  }
  return {};
}

Status Starved::PostBatch(uint64_t first) {
  for (uint64_t i = 0; i < kStarvedReceives; ++i) {
    if (const int result = PostRnrReceive(stage_, *qp_, first + i); result != 0) {
      return Fail(CallError(ErrorClass::kRun, "ibv_post_recv", stage_.name(), result));
    }
  }
  return {};
}

Expected<bool> Starved::Take(uint64_t number) {
  Expected<std::optional<ibv_wc>> next =
      stage_.requester() ? qp_->AwaitSend(limit_) : qp_->AwaitReceive(limit_);
  if (!next) return Fail(std::move(next.error()));
  if (!*next) {
    wrong_ =
        fmt::format("message {}: no completion within {}", number, DurationText(limit_.count()));
  } else if ((*next)->status != IBV_WC_SUCCESS) {
    wrong_ = fmt::format("message {}: {}", number, NameOf((*next)->status));
  } else if (NumberOfId((*next)->wr_id) != number) {
    wrong_ =
        fmt::format("message {}: completion of message {}", number, NumberOfId((*next)->wr_id));
  }
  return wrong_.empty();
}

void Starved::Report(const std::string& theirs) {
  CheckRow row{.name = stage_.name(),
               .status = "pass",
               .expected = fmt::format("all {} messages arrive, late", total_),
               .source = kSource};
  if (wrong_.empty() && theirs.empty()) {
    row.observed = fmt::format(
        "{} messages, {} in flight against {} receives at a time, in {}; {} waits of {} are due",
        total_, kStarvedInFlight, kStarvedReceives, MillisecondsText(elapsed_ns_),
        total_ / kStarvedReceives - 1, MillisecondsText(RnrTimerNs(code_)));
    if (naks_) row.observed += fmt::format(", {} NAKs came", *naks_);
  } else {
    row.status = "fail";
    row.observed = !wrong_.empty() ? "at the requester: " + wrong_ : "at the responder: " + theirs;
  }
  stage_.Check(std::move(row));
}

void Starved::Measured() {
  Result result;
  result.point = RnrPoint(stage_, code_, kStarvedInFlight,
                          fmt::format("{} receives at a time", kStarvedReceives));
  result.complete = wrong_.empty();
  Operation operation;
  operation.definition = "round_trip";
  operation.ended_by = "send_completion";
  Metrics& metrics = result.metrics;
  metrics.latency = MakeLatencyMetrics(histogram_, operation);
  metrics.rnr = RnrMetrics{.nominal_ns = RnrTimerNs(code_)};
  const double seconds = static_cast<double>(elapsed_ns_) / 1e9;
  BandwidthMetrics bandwidth;
  bandwidth.bytes = done_ * stage_.size_bytes();
  bandwidth.messages = done_;
  bandwidth.seconds = seconds;
  if (elapsed_ns_ > 0) {
    bandwidth.gbit_per_s = static_cast<double>(bandwidth.bytes) * 8 / seconds / 1e9;
    bandwidth.msg_per_s = static_cast<double>(done_) / seconds;
  }
  metrics.bandwidth = bandwidth;
  if (naks_) metrics.counters[std::string(kNaksReceived)] = static_cast<int64_t>(*naks_);
  stage_.Keep(std::move(result));
}

}  // namespace

Scenario RnrStarved(uint32_t timer_code) {
  const auto run = [timer_code](Stage& stage) { return Starved(stage, timer_code).Run(); };
  return {.name = fmt::format("starved-code-{}", timer_code), .requester = run, .responder = run};
}

}  // namespace verbscope
