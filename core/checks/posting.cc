// Checks of posting: what a post promises and what it does not, inline data, lists with a request
// that is refused, signals.
#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/checks/bodies.h"

namespace verbscope {
namespace {

constexpr Piece kMessage = {.offset = 0, .bytes = 64};
constexpr Piece kPlace = {.offset = 1024, .bytes = 64};
constexpr int kMostPosts = 16384;  // far above the room that any device adds to a short queue
// Retries without end, 0.64 ms apart.
constexpr FreshQpOptions kPatient = {
    .send_depth = 16, .receive_depth = 16, .rnr_retry = 7, .rnr_timer_code = 12};

std::string PostText(int result) { return result == 0 ? "accepted" : "refused"; }

// A list of SENDs, each of the same piece.
struct SendList {
  SendList(const LocalEnd& end, size_t count) : sges(count), requests(count) {
    for (size_t i = 0; i < count; ++i) {
      requests[i] = end.Request({.wr_id = i + 1, .pieces = {kMessage}}, sges[i]);
      if (i > 0) requests[i - 1].next = &requests[i];
    }
  }
  std::vector<std::vector<ibv_sge>> sges;
  std::vector<ibv_send_wr> requests;
};

size_t Place(const ibv_send_wr* bad, const SendList& list) {
  return bad == nullptr ? 0 : static_cast<size_t>(bad - list.requests.data()) + 1;
}

// How many of wr_id 1, 2, … complete in this order with success.
uint64_t SentInOrder(Trial& trial, LocalEnd& end, uint64_t most) {
  for (uint64_t i = 1; i <= most; ++i) {
    const std::optional<ibv_wc> wc = end.AwaitSend(trial.limit());
    if (!wc || wc->status != IBV_WC_SUCCESS || wc->wr_id != i) return i - 1;
  }
  return most;
}

void ListWithABadRequest(Trial& trial) {
  const Ends ends = trial.Connect();
  if (!ends) return;
  for (uint64_t i = 1; i <= 4; ++i) ends.there->PostReceive({.wr_id = i, .pieces = {kPlace}});
  SendList list(*ends.here, 4);
  // More entries than any queue pair of this device takes.
  const size_t too_many = trial.device().info().limits.max_sge + 1;
  std::vector<ibv_sge> many(too_many, list.sges[2].front());
  const ibv_send_wr good = list.requests[2];
  list.requests[2].sg_list = many.data();
  list.requests[2].num_sge = static_cast<int>(too_many);
  ibv_send_wr* bad = nullptr;
  if (!trial.ok()) return;
  const int refused = ibv_post_send(ends.here->qp(), list.requests.data(), &bad);
  trial.Expect("send-list", "refused, bad_wr at request 3",
               fmt::format("{}, bad_wr at request {}", PostText(refused), Place(bad, list)));
  const uint64_t before = SentInOrder(trial, *ends.here, 2);
  trial.Expect("those-before", "2 completed, then nothing",
               fmt::format("{} completed, then {}", before,
                           ends.here->AwaitSend(kQuiet) ? "another" : "nothing"));
  ibv_send_wr* const next = list.requests[2].next;
  list.requests[2] = good;
  list.requests[2].next = next;
  if (!trial.ok()) return;
  const int resumed = ibv_post_send(ends.here->qp(), &list.requests[2], &bad);
  uint64_t rest = 0;
  for (uint64_t i = 3; i <= 4 && resumed == 0; ++i) {
    const std::optional<ibv_wc> wc = ends.here->AwaitSend(trial.limit());
    rest += wc && wc->status == IBV_WC_SUCCESS && wc->wr_id == i ? 1 : 0;
  }
  trial.Expect("resumed", "accepted, 2 completed",
               fmt::format("{}, {} completed", PostText(resumed), rest));
}

// Nothing can complete, so the queue fills up.
void ListThatIsTooLong(Trial& trial) {
  const Ends ends = trial.Connect(kPatient);
  if (!ends) return;
  SendList list(*ends.here, kMostPosts);
  ibv_send_wr* bad = nullptr;
  const int refused = ibv_post_send(ends.here->qp(), list.requests.data(), &bad);
  const size_t posted = bad == nullptr ? 0 : Place(bad, list) - 1;
  trial.Expect("overflow", "ENOMEM after 16 or more",
               fmt::format("{} after {}", refused == ENOMEM ? "ENOMEM" : ErrnoText(refused),
                           posted >= kPatient.send_depth ? "16 or more" : std::to_string(posted)));
  if (posted == 0 || posted > 1024) return;
  uint64_t completed = 0;
  for (uint64_t i = 0; i < posted && trial.ok(); ++i) {
    ends.there->PostReceive({.wr_id = i, .pieces = {kPlace}});
    const std::optional<ibv_wc> wc = ends.here->AwaitSend(trial.limit());
    if (!wc || wc->status != IBV_WC_SUCCESS || wc->wr_id != i + 1) break;
    ++completed;
  }
  trial.Expect("all-before", fmt::format("{} completed in order", posted),
               fmt::format("{} completed in order", completed));
}

void ReceiveListWithABadRequest(Trial& trial) {
  const Ends ends = trial.Connect();
  if (!ends) return;
  std::vector<ibv_sge> one = ends.here->Sges({kPlace}, Key::kRight);
  const size_t too_many = trial.device().info().limits.max_sge + 1;
  std::vector<ibv_sge> many(too_many, one.front());
  std::vector<ibv_recv_wr> list(4);
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = {.wr_id = i + 1, .next = nullptr, .sg_list = one.data(), .num_sge = 1};
    if (i > 0) list[i - 1].next = &list[i];
  }
  list[2].sg_list = many.data();
  list[2].num_sge = static_cast<int>(too_many);
  ibv_recv_wr* bad = nullptr;
  const int refused = ibv_post_recv(ends.here->qp(), list.data(), &bad);
  trial.Expect("receive-list", "refused, bad_wr at request 3",
               fmt::format("{}, bad_wr at request {}", PostText(refused),
                           bad == nullptr ? 0 : bad - list.data() + 1));
  std::string took;
  for (uint64_t i = 1; i <= 2; ++i) {
    ends.there->PostSend({.wr_id = i, .pieces = {kMessage}});
    const std::optional<ibv_wc> wc = ends.here->AwaitReceive(trial.limit());
    took += fmt::format(" {}", wc && wc->status == IBV_WC_SUCCESS ? wc->wr_id : 0);
  }
  trial.Expect("receives-before", "messages take receive 1 2", "messages take receive" + took);
}

}  // namespace

void PostVsComplete(Trial& trial) {
  Ends ends = trial.Connect();
  if (!ends) return;
  const int accepted =
      ends.here->PostSend({.opcode = IBV_WR_RDMA_WRITE, .pieces = {kMessage}, .rkey = Key::kWrong});
  const std::optional<ibv_wc> failed = ends.here->AwaitSend(trial.limit());
  trial.Expect("accepted-then-failed", "accepted, REM_ACCESS_ERR",
               fmt::format("{}, {}", PostText(accepted), StatusOf(failed)));
  ends = trial.Connect(kPatient);
  if (!ends) return;
  const int posted = ends.here->PostSend({.wr_id = 1, .pieces = {kMessage}});
  const std::optional<ibv_wc> early = ends.here->AwaitSend(kQuiet);
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  const std::optional<ibv_wc> late = ends.here->AwaitSend(trial.limit());
  trial.Expect("not-before-it-is-done", "accepted, no completion, after the receive SUCCESS",
               fmt::format("{}, {}, after the receive {}", PostText(posted), StatusOf(early),
                           StatusOf(early ? early : late)));
}

void Inline(Trial& trial) {
  const uint32_t limit = trial.latch().Take(trial.device().MaxInlineBytes());
  if (trial.ok() && limit == 0) return trial.Skip("data", "this device takes nothing inline");
  FreshQpOptions options = kPatient;
  options.max_inline_bytes = limit;
  const Ends ends = trial.Connect(options, kPatient);
  if (!ends) return;
  const Piece message = {.offset = 0, .bytes = std::min<uint64_t>(limit, 64)};
  const Piece place = {.offset = kPlace.offset, .bytes = message.bytes};
  constexpr unsigned kFlags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  // No receive is there: the device has to send it again later, when the buffer has changed.
  ends.here->Fill(message, 1);
  ends.here->PostSend({.wr_id = 1, .flags = kFlags, .pieces = {message}});
  ends.here->Fill(message, 2);
  ends.there->PostReceive({.wr_id = 1, .pieces = {place}});
  const std::string pair = trial.AwaitBoth(ends);
  trial.Expect(
      "buffer-free-at-once", "requester SUCCESS, responder SUCCESS, the bytes at posting",
      pair + (ends.there->FirstOther(place, 1) ? ", other bytes" : ", the bytes at posting"));
  ends.there->PostReceive({.wr_id = 2, .pieces = {place}});
  ends.here->PostSend({.wr_id = 2, .flags = kFlags, .pieces = {message}, .lkey = Key::kWrong});
  trial.Expect("no-lkey", "requester SUCCESS, responder SUCCESS", trial.AwaitBoth(ends));
  const uint64_t above = ends.here->fresh().max_inline_bytes() + 1;
  const int refused =
      ends.here->PostSend({.wr_id = 3, .flags = kFlags, .pieces = {{.offset = 0, .bytes = above}}});
  trial.Expect("above-the-limit", "refused", PostText(refused));
}

void BadWr(Trial& trial) {
  ListWithABadRequest(trial);
  ListThatIsTooLong(trial);
  ReceiveListWithABadRequest(trial);
}

void SelectiveSignal(Trial& trial) {
  constexpr uint64_t kSends = 8;
  Ends ends = trial.Connect();
  if (!ends) return;
  for (uint64_t i = 1; i <= kSends; ++i) {
    ends.there->PostReceive({.wr_id = i, .pieces = {kPlace}});
    ends.here->PostSend(
        {.wr_id = i, .flags = i == kSends ? unsigned{IBV_SEND_SIGNALED} : 0, .pieces = {kMessage}});
  }
  const std::optional<ibv_wc> only = ends.here->AwaitSend(trial.limit());
  const bool more = ends.here->AwaitSend(kQuiet).has_value();
  uint64_t received = 0;
  while (received < kSends && ends.there->AwaitReceive(trial.limit())) ++received;
  trial.Expect("one-for-all", "SUCCESS of request 8, no other; 8 received",
               fmt::format("{} of request {}, {} other; {} received", StatusOf(only),
                           only ? only->wr_id : 0, more ? "and" : "no", received));
  ends.here->PostSend({.wr_id = 9,
                       .opcode = IBV_WR_RDMA_WRITE,
                       .flags = 0,
                       .pieces = {kMessage},
                       .rkey = Key::kWrong});
  trial.Expect("a-failure-always-completes", "REM_ACCESS_ERR",
               StatusOf(ends.here->AwaitSend(trial.limit())));
  FreshQpOptions all = {};
  all.signal_all = true;
  ends = trial.Connect(all, {});
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->PostSend({.wr_id = 1, .flags = 0, .pieces = {kMessage}});
  trial.Expect("sq-sig-all", "requester SUCCESS, responder SUCCESS", trial.AwaitBoth(ends));
}

}  // namespace verbscope
