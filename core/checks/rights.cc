// Checks of who may touch which memory: access rights, bounds, protection domains, and Atomics.
#include <fmt/core.h>

#include <string>
#include <utility>

#include "core/checks/bodies.h"

namespace verbscope {
namespace {

constexpr Piece kMessage = {.offset = 0, .bytes = 64};
constexpr Piece kPlace = {.offset = 1024, .bytes = 64};
constexpr Piece kWord = {.offset = 64, .bytes = 8};
constexpr int kAllRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct Verb {
  const char* name;
  ibv_wr_opcode opcode;
  int right;
};
constexpr Verb kVerbs[] = {
    {"write", IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
    {"read", IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ},
    {"atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC},
};

FreshQpOptions Rights(int memory, int qp) {
  FreshQpOptions options = {};
  options.memory_access = memory;
  options.qp_access = qp;
  return options;
}

// One request with everything right but what the ends' rights say.
std::string Touch(Trial& trial, const Ends& ends, const Verb& verb) {
  const bool atomic = verb.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
  ends.here->PostSend({.opcode = verb.opcode,
                       .pieces = {atomic ? kWord : kMessage},
                       .remote_offset = kPlace.offset,
                       .compare_add = 1});
  return StatusOf(ends.here->AwaitSend(trial.limit()));
}

void RemoteRights(Trial& trial, const Verb& verb) {
  constexpr int kQpRights = kAllRights & ~IBV_ACCESS_LOCAL_WRITE;
  for (const bool region : {true, false}) {
    for (const bool qp : {true, false}) {
      const Ends ends = trial.Connect(Rights(kAllRights, kQpRights),
                                      Rights(region ? kAllRights : kAllRights & ~verb.right,
                                             qp ? kQpRights : kQpRights & ~verb.right));
      if (!ends) return;
      trial.Expect(fmt::format("{}-{}", verb.name,
                               region && qp ? "allowed"
                               : region     ? "not-by-qp"
                               : qp         ? "not-by-region"
                                            : "by-neither"),
                   // What a QP does not do is no matter of the key (IBTA vol. 1, 9.7.4.1.2).
                   region && qp ? "SUCCESS"
                   : qp         ? "REM_ACCESS_ERR"
                                : "REM_INV_REQ_ERR",
                   Touch(trial, ends, verb));
    }
  }
}

}  // namespace

void Access(Trial& trial) {
  const bool atomics = trial.device().info().limits.atomics;
  for (const Verb& verb : kVerbs) {
    if (verb.right == IBV_ACCESS_REMOTE_ATOMIC && !atomics) {
      trial.Skip("atomic", "the device has no Atomics");
    } else {
      RemoteRights(trial, verb);
    }
  }
  // Local rights: only what is written into needs one.
  const FreshQpOptions usual = {};
  const FreshQpOptions read_only = Rights(0, IBV_ACCESS_REMOTE_WRITE);
  Ends ends = trial.Connect(read_only, usual);
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->PostSend({.pieces = {kMessage}});
  trial.Expect("send-from-read-only", "requester SUCCESS, responder SUCCESS",
               trial.AwaitBoth(ends));
  ends.here->PostSend({.opcode = IBV_WR_RDMA_READ, .pieces = {kPlace}});
  trial.Expect("read-into-read-only", "LOC_PROT_ERR",
               StatusOf(ends.here->AwaitSend(trial.limit())));
  ends = trial.Connect(usual, read_only);
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->PostSend({.pieces = {kMessage}});
  trial.Expect("receive-into-read-only", "requester REM_OP_ERR, responder LOC_PROT_ERR",
               trial.AwaitBoth(ends));
}

void Bounds(Trial& trial) {
  const auto bytes = static_cast<int64_t>(FreshQpOptions{}.buffer_bytes);
  for (const auto& [where, offset] :
       {std::pair("last-byte", bytes - 64), std::pair("one-behind", bytes - 63),
        std::pair("one-before", int64_t{-1})}) {
    for (const auto& [verb, opcode] :
         {std::pair("write", IBV_WR_RDMA_WRITE), std::pair("read", IBV_WR_RDMA_READ)}) {
      const Ends ends = trial.Connect();
      if (!ends) return;
      ends.here->PostSend({.opcode = opcode, .pieces = {kMessage}, .remote_offset = offset});
      trial.Expect(fmt::format("{}-{}", verb, where),
                   offset == bytes - 64 ? "SUCCESS" : "REM_ACCESS_ERR",
                   StatusOf(ends.here->AwaitSend(trial.limit())));
    }
  }
  const Ends ends = trial.Connect();
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->PostSend({.pieces = {{static_cast<uint64_t>(bytes) - 63, 64}}});
  trial.Expect("send-from-one-behind", "requester LOC_PROT_ERR, responder no completion",
               trial.AwaitSendOnly(ends));
}

void ProtectionDomains(Trial& trial) {
  FreshQpOptions options = {};
  options.foreign_region = true;
  Ends ends = trial.Connect(options);
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
  ends.here->PostSend({.pieces = {kMessage}, .lkey = Key::kForeign});
  trial.Expect("foreign-lkey", "requester LOC_PROT_ERR, responder no completion",
               trial.AwaitSendOnly(ends));
  for (const Verb& verb : {kVerbs[0], kVerbs[1]}) {
    ends = trial.Connect(options);
    if (!ends) return;
    ends.here->PostSend({.opcode = verb.opcode,
                         .pieces = {kMessage},
                         .remote_offset = kPlace.offset,
                         .rkey = Key::kForeign});
    trial.Expect(fmt::format("{}-foreign-rkey", verb.name),
                 "requester REM_ACCESS_ERR, responder no completion", trial.AwaitSendOnly(ends));
  }
  ends = trial.Connect(options);
  if (!ends) return;
  ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}, .lkey = Key::kForeign});
  ends.here->PostSend({.pieces = {kMessage}});
  trial.Expect("foreign-receive", "requester REM_OP_ERR, responder LOC_PROT_ERR",
               trial.AwaitBoth(ends));
}

void Atomics(Trial& trial) {
  if (!trial.device().info().limits.atomics) {
    return trial.Skip("values", "the device has no Atomics");
  }
  const FreshQpOptions options = Rights(kAllRights, kAllRights & ~IBV_ACCESS_LOCAL_WRITE);
  Ends ends = trial.Connect(options);
  if (!ends) return;
  struct Row {
    const char* part;
    ibv_wr_opcode opcode;
    uint64_t before, compare_add, swap, after;
  };
  constexpr uint64_t kMost = ~uint64_t{0};
  for (const Row& row : {Row{"add", IBV_WR_ATOMIC_FETCH_AND_ADD, 40, 2, 0, 42},
                         Row{"add-nothing", IBV_WR_ATOMIC_FETCH_AND_ADD, 40, 0, 0, 40},
                         Row{"add-wraps", IBV_WR_ATOMIC_FETCH_AND_ADD, kMost, 2, 0, 1},
                         Row{"swap-equal", IBV_WR_ATOMIC_CMP_AND_SWP, 40, 40, 7, 7},
                         Row{"swap-unequal", IBV_WR_ATOMIC_CMP_AND_SWP, 40, 41, 7, 40}}) {
    ends.there->SetWord(kPlace.offset, row.before);
    ends.here->PostSend({.opcode = row.opcode,
                         .pieces = {kWord},
                         .remote_offset = kPlace.offset,
                         .compare_add = row.compare_add,
                         .swap = row.swap});
    const std::string status = StatusOf(ends.here->AwaitSend(trial.limit()));
    trial.Expect(row.part,
                 fmt::format("SUCCESS, {} came back, {} is stored", row.before, row.after),
                 fmt::format("{}, {} came back, {} is stored", status,
                             ends.here->Word(kWord.offset), ends.there->Word(kPlace.offset)));
  }
  ends = trial.Connect(options);
  if (!ends) return;
  ends.there->SetWord(kPlace.offset, 40);
  const int refused = ends.here->PostSend({.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                           .pieces = {kWord},
                                           .remote_offset = kPlace.offset + 4,
                                           .compare_add = 1});
  const std::string status =
      refused != 0 ? "refused by the post" : StatusOf(ends.here->AwaitSend(trial.limit()));
  trial.Expect("unaligned", "REM_INV_REQ_ERR, 40 is stored",
               fmt::format("{}, {} is stored", status, ends.there->Word(kPlace.offset)));
}

}  // namespace verbscope
