// Checks of what fails: the status on both sides, what is flushed, the asynchronous event, and a
// receiver that is not ready.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "core/causes/completion_status.h"
#include "core/checks/bodies.h"
#include "core/scenario/expectations.h"

namespace verbscope {
namespace {

constexpr Piece kMessage = {.offset = 0, .bytes = 64};
constexpr Piece kPlace = {.offset = 1024, .bytes = 64};

SendSpec BadWrite(uint64_t wr_id) {
  return {.wr_id = wr_id,
          .opcode = IBV_WR_RDMA_WRITE,
          .pieces = {kMessage},
          .remote_offset = kPlace.offset,
          .rkey = Key::kWrong};
}

// "LOC_PROT_ERR 1, WR_FLUSH_ERR 2, …" of the next completions.
std::string Statuses(Trial& trial, uint64_t count, bool receives, End& end) {
  std::string text;
  for (uint64_t i = 0; i < count; ++i) {
    const std::optional<ibv_wc> wc =
        receives ? end.AwaitReceive(trial.limit()) : end.AwaitSend(trial.limit());
    text += (i > 0 ? ", " : "") + StatusOf(wc);
    if (!wc) break;
    text += fmt::format(" {}", wc->wr_id);
  }
  return text;
}

}  // namespace

void Errors(Trial& trial) {
  Ends ends = trial.Connect();
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->PostSend({.pieces = {kMessage}, .lkey = Key::kWrong});
  trial.Expect("local-key", "requester LOC_PROT_ERR, responder no completion",
               trial.AwaitSendOnly(ends));
  for (const auto& [part, opcode] :
       {std::pair("write-rkey", IBV_WR_RDMA_WRITE), std::pair("read-rkey", IBV_WR_RDMA_READ)}) {
    ends = trial.Connect();
    if (!ends) return;
    ends.here->PostSend({.opcode = opcode, .pieces = {kMessage}, .rkey = Key::kWrong});
    trial.Expect(part, "requester REM_ACCESS_ERR, responder no completion",
                 trial.AwaitSendOnly(ends));
  }
  ends = trial.Connect();
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}, .lkey = Key::kWrong});
  ends.here->PostSend({.pieces = {kMessage}});
  trial.Expect("receive-key", "requester REM_OP_ERR, responder LOC_PROT_ERR",
               trial.AwaitBoth(ends));
  ends = trial.Connect();
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {{kPlace.offset, 63}}});
  ends.here->PostSend({.pieces = {kMessage}});
  trial.Expect("too-long", "requester REM_INV_REQ_ERR, responder LOC_LEN_ERR",
               trial.AwaitBoth(ends), kTooLong);
  // A queue pair that answers nothing.
  FreshQpOptions hasty = {};
  hasty.timeout_code = 10;  // 4 ms
  hasty.retry_count = 1;
  ends = trial.Connect(hasty);
  if (!ends) return;
  ends.there->ToError();
  ends.here->PostSend({.pieces = {kMessage}});
  trial.Expect("no-answer", "requester RETRY_EXC_ERR, responder no completion",
               trial.AwaitSendOnly(ends));
}

void FlushCheck(Trial& trial) {
  const Ends ends = trial.Connect();
  if (!ends) return;
  ends.here->PostReceive({.wr_id = 21, .pieces = {kPlace}});
  ends.here->PostReceive({.wr_id = 22, .pieces = {kPlace}});
  ends.here->PostSend(BadWrite(1));
  ends.here->PostSend(BadWrite(2));
  ends.here->PostSend({.wr_id = 3, .flags = 0, .pieces = {kMessage}});
  trial.Expect("sends-in-order", "REM_ACCESS_ERR 1, WR_FLUSH_ERR 2, WR_FLUSH_ERR 3",
               Statuses(trial, 3, false, *ends.here));
  trial.Expect("receives-in-order", "WR_FLUSH_ERR 21, WR_FLUSH_ERR 22",
               Statuses(trial, 2, true, *ends.here));
  trial.Expect("state", "ERR", QpStateName(ends.here->AwaitState(IBV_QPS_ERR, trial.limit())));
  ends.here->PostSend({.wr_id = 4, .pieces = {kMessage}});
  trial.Expect("send-in-error", "WR_FLUSH_ERR 4", Statuses(trial, 1, false, *ends.here));
  ends.here->PostReceive({.wr_id = 23, .pieces = {kPlace}});
  trial.Expect("receive-in-error", "WR_FLUSH_ERR",
               StatusOf(ends.here->AwaitReceive(trial.limit())), kLateReceive);
  if (!trial.Rejoin(ends)) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->PostSend({.wr_id = 5, .pieces = {kMessage}});
  trial.Expect("reset-and-reuse", "requester SUCCESS, responder SUCCESS", trial.AwaitBoth(ends));
}

void AsyncCheck(Trial& trial) {
  Ends ends = trial.Connect();
  if (!ends) return;
  ends.here->PostSend(BadWrite(1));
  (void)ends.here->AwaitSend(trial.limit());
  const std::optional<std::string> event =
      ends.there->AwaitAsyncEvent("QP_ACCESS_ERR", std::chrono::milliseconds(200));
  trial.Expect("access-error", "the responder hears QP_ACCESS_ERR",
               event ? "the responder hears QP_ACCESS_ERR" : "no event");
  ends = trial.Connect();
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->PostSend({.wr_id = 2, .pieces = {kMessage}});
  const std::string pair = trial.AwaitBoth(ends);
  const std::optional<std::string> none = ends.here->AwaitAsyncEvent("QP_", kQuiet);
  trial.Expect("none-without-a-fault", "requester SUCCESS, responder SUCCESS, no event",
               pair + (none ? ", " + *none : ", no event"));
}

void NotReady(Trial& trial) {
  FreshQpOptions hasty = {};
  hasty.rnr_retry = 1;
  hasty.rnr_timer_code = 1;  // 10 us
  for (const auto& [part, opcode] :
       {std::pair("exhausted", IBV_WR_SEND),
        std::pair("exhausted-write-imm", IBV_WR_RDMA_WRITE_WITH_IMM)}) {
    const Ends ends = trial.Connect(hasty);
    if (!ends) return;
    ends.here->PostSend({.opcode = opcode, .pieces = {kMessage}, .remote_offset = kPlace.offset});
    trial.Expect(part, "requester RNR_RETRY_EXC_ERR, responder no completion",
                 trial.AwaitSendOnly(ends));
  }
  FreshQpOptions endless = hasty;
  endless.rnr_retry = 7;
  Ends ends = trial.Connect(endless);
  if (!ends) return;
  ends.here->PostSend({.pieces = {kMessage}});
  const std::string early = StatusOf(ends.here->AwaitSend(kQuiet));
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  trial.Expect("retry-7-has-no-end", "no completion, then requester SUCCESS, responder SUCCESS",
               early + ", then " + trial.AwaitBoth(ends));
  FreshQpOptions slow = hasty;
  slow.rnr_retry = 6;
  slow.rnr_timer_code = 24;  // 41 ms
  ends = trial.Connect(slow);
  if (!ends) return;
  ends.here->PostSend({.pieces = {kMessage}});
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  trial.Expect("replenished-in-time", "requester SUCCESS, responder SUCCESS",
               trial.AwaitBoth(ends));
}

}  // namespace verbscope
