// Checks that lose a packet on purpose, to see what the second transmission carries and what waits
// for it.
#include <fmt/core.h>

#include <string>

#include "core/checks/bodies.h"

namespace verbscope {
namespace {

constexpr Piece kMessage = {.offset = 0, .bytes = 64};
constexpr Piece kPlace = {.offset = 1024, .bytes = 64};

constexpr const char* kCannotLose =
    "only a device that loses a packet on demand shows it: use --device soft";

FreshQpOptions Hasty() {
  FreshQpOptions options = {};
  options.timeout_code = 12;  // 17 ms
  return options;
}

std::string Bytes(End& end, Piece piece, uint8_t old_seed, uint8_t new_seed) {
  if (!end.FirstOther(piece, old_seed)) return "the old bytes";
  return end.FirstOther(piece, new_seed) ? "neither the old nor the new bytes" : "the new bytes";
}

}  // namespace

void Ownership(Trial& trial) {
  const Ends ends = trial.Connect(Hasty());
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->Fill(kMessage, 1);
  if (!ends.here->LoseNext(LossyPacket::kRequest, 1)) {
    return trial.Skip("retransmission", kCannotLose);
  }
  ends.here->PostSend({.wr_id = 1, .pieces = {kMessage}});
  // The program breaks its promise not to touch the buffer until the completion.
  ends.here->Fill(kMessage, 2);
  const std::string pair = trial.AwaitBoth(ends);
  trial.Expect("retransmission", "requester SUCCESS, responder SUCCESS, the new bytes",
               pair + ", " + Bytes(*ends.there, kPlace, 1, 2));
}

void Fence(Trial& trial) {
  for (const auto& [part, fence, expected] :
       {std::tuple("without", false, "the old bytes"), std::tuple("with", true, "the new bytes")}) {
    const Ends ends = trial.Connect(Hasty());
    if (!ends) return;
    // A SEND of the memory that a READ in front of it is still to fill.
    ends.here->Fill(kMessage, 1);
    ends.there->Fill({2048, 64}, 2);
    ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
    if (!ends.there->LoseNext(LossyPacket::kReadResponse, 1)) return trial.Skip(part, kCannotLose);
    ends.here->PostSend({.wr_id = 1,
                         .opcode = IBV_WR_RDMA_READ,
                         .flags = 0,
                         .pieces = {kMessage},
                         .remote_offset = 2048});
    ends.here->PostSend({.wr_id = 2,
                         .flags = IBV_SEND_SIGNALED | (fence ? unsigned{IBV_SEND_FENCE} : 0),
                         .pieces = {kMessage}});
    const std::string pair = trial.AwaitBoth(ends);
    trial.Expect(part, fmt::format("requester SUCCESS, responder SUCCESS, {}", expected),
                 pair + ", " + Bytes(*ends.there, kPlace, 1, 2));
  }
}

}  // namespace verbscope
