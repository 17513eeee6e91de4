#include <fmt/core.h>

#include <utility>

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

using std::chrono::nanoseconds;

constexpr const char* kSource =
    "IBTA vol. 1, 9.7.5.2.8: rnr_retry 7 is without limit, and receives posted in time end the "
    "wait";

class Recovery {
 public:
  explicit Recovery(Stage& stage)
      : stage_(stage),
        code_(stage.plan().rnr_timer_code),
        rounds_(RecoveryRounds(stage.plan())),
        scale_(stage.clock().scale()) {}

  Status Run();

 private:
  Status Round(uint64_t round);
  Status Request(uint64_t round);
  Status Respond(uint64_t round);
  // The completions of one round on this side, all due `late` after `start` or within a wait of it.
  Status Collect(uint64_t round, uint64_t start, nanoseconds late);
  void Report(const std::string& theirs);
  void Measured();

  Stage& stage_;
  const uint32_t code_;
  const uint64_t rounds_;
  const TickScale scale_;
  FreshQp* qp_ = nullptr;
  Histogram histogram_;
  std::string wrong_;  // the first thing that was
};

Status Recovery::Run() {
  Expected<FreshQp*> qp = MakeRnrQp(stage_, code_, kRnrRetryForever);
  if (!qp) return Fail(std::move(qp.error()));
  qp_ = *qp;
  if (Status status = qp_->Connect(); !status) return status;
  for (uint64_t round = 0; round < rounds_; ++round) {
    if (Status status = Round(round); !status) return status;
    // Both go on, or neither.
    Expected<nlohmann::json> peer = stage_.Swap({{"wrong", wrong_}});
    if (!peer) return Fail(std::move(peer.error()));
    const auto found = peer->find("wrong");
    const std::string theirs = found != peer->end() && found->is_string()
                                   ? Printable(found->get_ref<const std::string&>(), 256)
                                   : std::string();
    const bool over = !wrong_.empty() || !theirs.empty() || round + 1 == rounds_;
    if (over && stage_.requester()) Report(theirs);
    if (over) break;
  }
  Measured();
  return {};
}

Status Recovery::Round(uint64_t round) {
  if (Status status = stage_.Meet("round"); !status) return status;
  return stage_.requester() ? Request(round) : Respond(round);
}

Status Recovery::Request(uint64_t round) {
  const uint64_t start = stage_.Now();
  for (uint64_t i = 0; i < kRecoverySends; ++i) {
    const uint64_t number = round * kRecoverySends + i;
    if (const int result = PostRnrSend(stage_, *qp_, IBV_WR_SEND, number); result != 0) {
      return Fail(CallError(ErrorClass::kRun, "ibv_post_send", stage_.name(), result));
    }
  }
  return Collect(round, start, nanoseconds(RecoveryDelayNs(stage_.plan(), round)));
}

Status Recovery::Respond(uint64_t round) {
  const nanoseconds late(RecoveryDelayNs(stage_.plan(), round));
  Expected<std::string> wrong = StayUnready(*qp_, late);
  if (!wrong) return Fail(std::move(wrong.error()));
  wrong_ = std::move(*wrong);
  if (!wrong_.empty()) return {};
  const uint64_t start = stage_.Now();
  for (uint64_t i = 0; i < kRecoverySends; ++i) {
    const uint64_t number = round * kRecoverySends + i;
    if (const int result = PostRnrReceive(stage_, *qp_, number); result != 0) {
      return Fail(CallError(ErrorClass::kRun, "ibv_post_recv", stage_.name(), result));
    }
  }
  return Collect(round, start, nanoseconds(0));
}

Status Recovery::Collect(uint64_t round, uint64_t start, nanoseconds late) {
  const nanoseconds limit = late + RnrLimit(stage_, code_, 1);
  for (uint64_t i = 0; i < kRecoverySends; ++i) {
    const uint64_t number = round * kRecoverySends + i;
    Expected<std::optional<ibv_wc>> next =
        stage_.requester() ? qp_->AwaitSend(limit) : qp_->AwaitReceive(limit);
    const uint64_t end = stage_.Now();
    if (!next) return Fail(std::move(next.error()));
    const std::string what = fmt::format("round {}, message {}", round, i);
    if (!*next) {
      wrong_ = fmt::format("{}: no completion within {}", what, DurationText(limit.count()));
      return {};
    }
    if ((*next)->status != IBV_WC_SUCCESS) {
      wrong_ = fmt::format("{}: {}", what, NameOf((*next)->status));
      return {};
    }
    if (NumberOfId((*next)->wr_id) != number) {
      wrong_ = fmt::format("{}: completion of message {}", what, NumberOfId((*next)->wr_id));
      return {};
    }
    if (i == 0) histogram_.Record(scale_.Nanoseconds(end - start));
  }
  return {};
}

void Recovery::Report(const std::string& theirs) {
  CheckRow row{.name = stage_.name(),
               .status = "pass",
               .expected = "all messages arrive once there are receives",
               .source = kSource};
  if (wrong_.empty() && theirs.empty()) {
    const int64_t late_ns = RecoveryDelayNs(stage_.plan(), 0);
    const bool outlasts = late_ns / RnrTimerNs(code_) > kLastFiniteRetry;
    row.observed =
        fmt::format("{} messages in {} rounds, the receives {} late in the first{}: all arrived",
                    rounds_ * kRecoverySends, rounds_, MillisecondsText(late_ns),
                    outlasts ? fmt::format(", which is more than {} waits", kLastFiniteRetry) : "");
  } else {
    row.status = "fail";
    row.observed = !wrong_.empty() ? "at the requester: " + wrong_ : "at the responder: " + theirs;
  }
  stage_.Check(std::move(row));
}

// From one clock each: the hosts' clocks need not agree.
void Recovery::Measured() {
  const bool requester = stage_.requester();
  Result result;
  result.point = RnrPoint(stage_, code_, kRecoverySends, "receives posted late");
  result.side = requester ? "requester" : "responder";
  result.complete = wrong_.empty();
  Operation operation;
  operation.definition = requester ? "round_trip" : "after_receive";
  operation.ended_by = requester ? "send_completion" : "recv_completion";
  result.metrics.latency = MakeLatencyMetrics(histogram_, operation);
  stage_.Keep(std::move(result));
}

}  // namespace

Scenario RnrRecovery() {
  const auto run = [](Stage& stage) { return Recovery(stage).Run(); };
  return {.name = "recovery", .requester = run, .responder = run};
}

}  // namespace verbscope
