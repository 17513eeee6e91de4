#include "core/scenario/rnr_attempt.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/causes/completion_status.h"
#include "core/causes/rc_timers.h"
#include "core/record/record_json.h"
#include "core/scenario/imm_value.h"
#include "core/scenario/message_check.h"
#include "core/session/messages.h"

namespace verbscope {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr uint32_t kQueue = 64;
constexpr nanoseconds kMostWait = std::chrono::seconds(17);  // below a step's time
// How much longer than its timer a wait may take before it is no wait: four timers, as for the ACK
// timeout, and a few ticks of a coarse clock.
constexpr int64_t kTimerSlack = 4;
constexpr nanoseconds kTickSlack = milliseconds(40);
// How long to look for a completion that must not come.
constexpr milliseconds kQuiet(5);

std::span<std::byte> ArrivalSlot(Stage& stage, FreshQp& qp) {
  const size_t slot = SlotBytes(stage.size_bytes());
  return qp.bytes().subspan(slot, slot);
}

Status Collect(Stage& stage, FreshQp& qp, const RnrKind& kind, RnrOutcome& outcome) {
  const TickScale scale = stage.clock().scale();
  const DeviceCounters counters(stage.device(), stage.path().port.number);
  const uint64_t start = stage.Now();
  for (uint32_t i = 0; i < kind.sends; ++i) {
    if (const int result = PostRnrSend(stage, qp, kind.opcode, i); result != 0) {
      return Fail(CallError(ErrorClass::kRun, "ibv_post_send", stage.name(), result));
    }
  }
  outcome.limit = RnrLimit(stage, kind.timer_code, kind.rnr_retry);
  while (outcome.completions.size() < kind.sends) {
    Expected<std::optional<ibv_wc>> next = qp.AwaitSend(outcome.limit);
    const uint64_t end = stage.Now();
    if (!next) return Fail(std::move(next.error()));
    if (!*next) break;
    outcome.completions.push_back({.wr_id = (*next)->wr_id,
                                   .status = (*next)->status,
                                   .at_ns = scale.Nanoseconds(end - start)});
  }
  outcome.naks = NaksOf(counters);
  return {};
}

Status Look(Stage& stage, FreshQp& qp, const RnrKind& kind) {
  uint64_t received = 0;
  std::string failed;
  for (nanoseconds limit = kQuiet;; limit = nanoseconds(0)) {
    Expected<std::optional<ibv_wc>> next = qp.AwaitReceive(limit);
    if (!next) return Fail(std::move(next.error()));
    if (!*next) break;
    const bool good = (*next)->status == IBV_WC_SUCCESS && (*next)->wr_id == ReceiveId(received);
    if (good) ++received;
    if (!good && failed.empty()) failed = NameOf((*next)->status);
  }
  Expected<ibv_qp_state> state = stage.device().QueryQpState(qp.qp());
  if (!state) return Fail(std::move(state.error()));
  std::string data = "part";
  const uint64_t size = stage.size_bytes();
  const std::span<std::byte> slot = ArrivalSlot(stage, qp);
  if (!CheckUntouched(slot, size)) data = "none";
  // The last message that can have arrived: all share a place.
  const uint64_t last = kind.receives > 0 ? kind.receives - 1 : 0;
  if (!CheckSlot(slot, size, last, Direction::kRequest)) data = "all";
  return stage.Tell(
      {{"received", received}, {"failed", failed}, {"state", QpStateName(*state)}, {"data", data}});
}

Status HearOfResponder(Stage& stage, RnrOutcome& outcome) {
  Expected<nlohmann::json> told = stage.Hear();
  if (!told) return Fail(std::move(told.error()));
  const auto text = [&told](const char* member) {
    const auto found = told->find(member);
    return found != told->end() && found->is_string()
               ? Printable(found->get_ref<const std::string&>(), 64)
               : std::string();
  };
  const Expected<uint64_t> received = Unsigned(*told, "received", 0, UINT32_MAX);
  if (!received) return Fail(received.error());
  outcome.received = *received;
  outcome.failed = text("failed");
  outcome.state = text("state");
  outcome.data = text("data");
  return {};
}

}  // namespace

Point RnrPoint(const Stage& stage, uint32_t timer_code, uint32_t in_flight, std::string variant) {
  Point point;
  point.op = "send";
  point.size_bytes = stage.size_bytes();
  point.wait = ToText(WaitMode{});
  point.tx_depth = in_flight;
  point.timer_code = timer_code;
  point.variant = std::move(variant);
  return point;
}

Expected<FreshQp*> MakeRnrQp(Stage& stage, uint32_t timer_code, uint32_t rnr_retry) {
  Expected<FreshQp*> qp = stage.MakeQp({.buffer_bytes = 2 * SlotBytes(stage.size_bytes()),
                                        .send_depth = kQueue,
                                        .receive_depth = kQueue,
                                        .rnr_retry = rnr_retry,
                                        .rnr_timer_code = timer_code});
  if (qp) ClearSlot(ArrivalSlot(stage, **qp), stage.size_bytes());
  return qp;
}

Expected<std::string> StayUnready(FreshQp& qp, nanoseconds time) {
  Expected<std::optional<ibv_wc>> next = qp.AwaitReceive(time);
  if (!next) return Fail(std::move(next.error()));
  if (!*next) return std::string();
  return fmt::format("{} completes without a receive", NameOf((*next)->status));
}

int PostRnrReceive(Stage& stage, FreshQp& qp, uint64_t number) {
  ibv_sge sge = qp.Sge(SlotBytes(stage.size_bytes()) + kGuardBytes, stage.size_bytes());
  return qp.PostReceive(ReceiveId(number), {&sge, 1});
}

int PostRnrSend(Stage& stage, FreshQp& qp, ibv_wr_opcode opcode, uint64_t number) {
  ibv_sge sge = qp.Sge(kGuardBytes, stage.size_bytes());
  ibv_send_wr request = {};
  request.wr_id = SendId(number);
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    request.imm_data = ToWire(ImmediateOf(number, Direction::kRequest));
    request.wr.rdma.remote_addr = qp.remote().address + SlotBytes(stage.size_bytes()) + kGuardBytes;
    request.wr.rdma.rkey = qp.remote().rkey;
  }
  return qp.PostSend(request);
}

Expected<RnrOutcome> RunOutOfReceives(Stage& stage, const RnrKind& kind) {
  RnrOutcome outcome;
  Expected<FreshQp*> qp = MakeRnrQp(stage, kind.timer_code, kind.rnr_retry);
  if (!qp) return Fail(std::move(qp.error()));
  // Every message has the data of the last one that a receive is there for: all leave from one
  // place, and some leave again.
  const uint64_t last = kind.receives > 0 ? kind.receives - 1 : 0;
  FillData((*qp)->bytes().subspan(kGuardBytes, stage.size_bytes()), last, Direction::kRequest);
  for (uint32_t i = 0; i < kind.receives && !stage.requester(); ++i) {
    if (const int result = PostRnrReceive(stage, **qp, i); result != 0) {
      return Fail(CallError(ErrorClass::kRun, "ibv_post_recv", stage.name(), result));
    }
  }
  if (Status status = (*qp)->Connect(); !status) return Fail(std::move(status.error()));
  if (stage.requester()) {
    Status status = Collect(stage, **qp, kind, outcome);
    if (!status) return Fail(std::move(status.error()));
  }
  // Both learn whether to go on; it is a barrier as well.
  outcome.came = !stage.requester() || outcome.completions.size() == kind.sends;
  Expected<nlohmann::json> peer = stage.Swap({{"came", outcome.came}});
  if (!peer) return Fail(std::move(peer.error()));
  const auto came = peer->find("came");
  outcome.came = outcome.came && came != peer->end() && *came == true;
  if (!outcome.came) stage.GiveUp(stage.name() + ": a completion did not come");
  Status status = stage.requester() ? HearOfResponder(stage, outcome) : Look(stage, **qp, kind);
  if (!status) return Fail(std::move(status.error()));
  return outcome;
}

std::optional<int64_t> TimeToError(const RnrOutcome& outcome) {
  for (const RnrCompletion& completion : outcome.completions) {
    if (completion.status == IBV_WC_RNR_RETRY_EXC_ERR) return completion.at_ns;
  }
  return std::nullopt;
}

std::string WrongCompletions(const RnrOutcome& outcome, uint32_t good, uint32_t sends) {
  for (uint32_t i = 0; i < sends; ++i) {
    const ibv_wc_status wanted = i < good    ? IBV_WC_SUCCESS
                                 : i == good ? IBV_WC_RNR_RETRY_EXC_ERR
                                             : IBV_WC_WR_FLUSH_ERR;
    if (i >= outcome.completions.size()) {
      return fmt::format("request {} has no completion within {}", i,
                         DurationText(outcome.limit.count()));
    }
    const RnrCompletion& got = outcome.completions[i];
    if (got.wr_id != SendId(i)) {
      return fmt::format("completion {} has wr_id 0x{:016x}, not that of request {}", i, got.wr_id,
                         i);
    }
    if (got.status != wanted) {
      return fmt::format("request {} ends with {}, not {}", i, NameOf(got.status), NameOf(wanted));
    }
  }
  return "";
}

nanoseconds RnrLimit(const Stage& stage, uint32_t timer_code, uint32_t waits) {
  const nanoseconds slack =
      (nanoseconds(RnrTimerNs(timer_code)) * kTimerSlack + kTickSlack) * waits;
  return std::min(stage.CompletionLimit() + slack, kMostWait);
}

std::optional<uint64_t> NaksOf(const DeviceCounters& counters) {
  const std::optional<int64_t> change = counters.Change(std::string(kNaksReceived));
  return change ? std::optional(static_cast<uint64_t>(*change)) : std::nullopt;
}

std::string MillisecondsText(int64_t ns) {
  return fmt::format("{:.3f} ms", static_cast<double>(ns) / 1e6);
}

}  // namespace verbscope
