// Checks of queues that several queue pairs share.
#include <fmt/core.h>

#include <cerrno>
#include <string>
#include <vector>

#include "core/checks/bodies.h"

namespace verbscope {
namespace {

constexpr Piece kMessage = {.offset = 0, .bytes = 64};

}  // namespace

void SharedCq(Trial& trial) {
  constexpr uint64_t kEach = 8;
  const Ends first = trial.Connect();
  if (!first) return;
  FreshQpOptions sharing = {};
  sharing.share_cqs = &first.here->fresh();
  const Ends second = trial.Connect(sharing, {});
  if (!second) return;
  for (uint64_t i = 1; i <= kEach; ++i) {
    for (const Ends& ends : {first, second}) {
      ends.here->PostReceive({.wr_id = i, .pieces = {{1024, 64}}});
      ends.there->PostSend({.wr_id = i, .pieces = {kMessage}});
      (void)ends.there->AwaitSend(trial.limit());
    }
  }
  // Everything is in one queue; each queue pair's own completions are in order.
  uint64_t of_first = 0;
  uint64_t of_second = 0;
  for (uint64_t i = 0; i < 2 * kEach; ++i) {
    const std::optional<ibv_wc> wc = first.here->AwaitReceive(trial.limit());
    if (!trial.ok() || !wc || wc->status != IBV_WC_SUCCESS) break;
    for (const auto& [ends, count] :
         {std::pair(&first, &of_first), std::pair(&second, &of_second)}) {
      if (wc->qp_num == ends->here->qp()->qp_num && wc->wr_id == *count + 1) ++*count;
    }
  }
  trial.Expect(
      "each-in-order", "8 of one queue pair and 8 of the other, each in order",
      fmt::format("{} of one queue pair and {} of the other, each in order", of_first, of_second));
}

void SharedReceiveQueue(Trial& trial) {
  if (trial.device().info().limits.max_srq == 0) {
    return trial.Skip("messages", "the device has no shared receive queues");
  }
  FreshQpOptions shared = {};
  shared.shared_receives = true;
  shared.receive_depth = 8;
  const Ends ends = trial.Connect({}, shared);
  if (!ends) return;
  for (uint64_t i = 1; i <= 4; ++i) ends.there->PostReceive({.wr_id = i, .pieces = {{1024, 64}}});
  trial.Expect("limit-is-set", "accepted",
               ends.there->SetSrqLimit(3) == 0 ? "accepted" : "refused");
  ends.here->PostSend({.pieces = {kMessage}});
  const std::string first = trial.AwaitBoth(ends);
  const auto early = ends.there->AwaitAsyncEvent("SRQ_LIMIT_REACHED", kQuiet);
  trial.Expect("above-the-limit", "requester SUCCESS, responder SUCCESS, no event",
               first + (early ? ", the limit event" : ", no event"));
  ends.here->PostSend({.pieces = {kMessage}});
  const std::string second = trial.AwaitBoth(ends);
  const auto event =
      ends.there->AwaitAsyncEvent("SRQ_LIMIT_REACHED", std::chrono::milliseconds(500));
  trial.Expect("below-the-limit", "requester SUCCESS, responder SUCCESS, the limit event",
               second + (event ? ", the limit event" : ", no event"));
  // The own receive queue of a queue pair with a shared one is of no use.
  FreshQpOptions own = shared;
  const Ends local = trial.Make(own, {});
  if (!local) return;
  ibv_recv_wr request = {};
  ibv_recv_wr* bad = nullptr;
  const int refused = ibv_post_recv(local.here->qp(), &request, &bad);
  trial.Expect("own-queue", "refused", refused == 0 ? "accepted" : "refused");
}

}  // namespace verbscope
