// Checks of messages that arrive: where the data lands, what the completions say, and in what
// order.
#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/checks/bodies.h"
#include "core/scenario/message_check.h"

namespace verbscope {
namespace {

constexpr uint64_t kGuard = 64;  // bytes around a place that must stay as they are
constexpr uint8_t kGuardSeed = 9;
constexpr Piece kMessage = {.offset = 0, .bytes = 256};
constexpr Piece kPlace = {.offset = 2048, .bytes = 256};

bool CarriesImm(const ibv_wc& wc) { return (wc.wc_flags & IBV_WC_WITH_IMM) != 0; }

std::string ImmText(const std::optional<ibv_wc>& wc) {
  if (!wc) return "no completion";
  return CarriesImm(*wc) ? fmt::format("immediate 0x{:08x}", ntohl(wc->imm_data)) : "no immediate";
}

std::string OpcodeText(const std::optional<ibv_wc>& wc) {
  if (!wc) return "no completion";
  return wc->status == IBV_WC_SUCCESS ? OpcodeName(wc->opcode) : StatusOf(wc);
}

// The place with its guards on both sides gets guard bytes.
void Guard(End& end, Piece place) {
  end.Fill({place.offset - kGuard, place.bytes + 2 * kGuard}, kGuardSeed);
}

// "in place", or the first byte that is wrong, inside or beyond.
std::string Placed(End& end, Piece place, uint8_t seed) {
  if (const auto wrong = end.FirstOther(place, seed)) {
    return fmt::format("byte {} of {} is another", *wrong, place.bytes);
  }
  const Piece before = {place.offset - kGuard, kGuard};
  if (end.FirstOther(before, kGuardSeed)) return "written in front of it";
  // The guard behind is the end of one pattern that began in front.
  const uint64_t skipped = kGuard + place.bytes;
  for (uint64_t i = 0; i < kGuard; i += sizeof(uint64_t)) {
    uint64_t expected = 0;
    for (uint64_t byte = 0; byte < sizeof(expected); ++byte) {
      expected |= std::to_integer<uint64_t>(PatternByte(skipped + i + byte, kGuardSeed))
                  << (8 * byte);
    }
    if (end.Word(place.offset + place.bytes + i) != le64toh(expected)) return "written behind it";
  }
  return "in place";
}

// One message of each kind and size, and how its data lies.
std::string MoveOne(Trial& trial, const Ends& ends, ibv_wr_opcode opcode, uint64_t bytes,
                    uint8_t seed) {
  const Piece from = {.offset = 0, .bytes = bytes};
  const Piece to = {.offset = ends.here->fresh().bytes().size() / 2, .bytes = bytes};
  const bool read = opcode == IBV_WR_RDMA_READ;
  End& source = read ? static_cast<End&>(*ends.there) : *ends.here;
  End& target = read ? static_cast<End&>(*ends.here) : *ends.there;
  source.Fill(from, seed);
  Guard(target, to);
  if (opcode == IBV_WR_SEND) ends.there->PostReceive({.wr_id = seed, .pieces = {to}});
  ends.here->PostSend({.wr_id = seed,
                       .opcode = opcode,
                       .pieces = {read ? to : from},
                       .remote_offset = static_cast<int64_t>(read ? from.offset : to.offset)});
  const std::optional<ibv_wc> sent = ends.here->AwaitSend(trial.limit());
  if (!sent || sent->status != IBV_WC_SUCCESS) return StatusOf(sent);
  if (opcode == IBV_WR_SEND) {
    const std::optional<ibv_wc> received = ends.there->AwaitReceive(trial.limit());
    if (!received || received->status != IBV_WC_SUCCESS) return StatusOf(received);
  }
  return Placed(target, to, seed);
}

}  // namespace

void Recv(Trial& trial) {
  const Ends ends = trial.Connect();
  if (!ends) return;
  constexpr std::array<uint64_t, 3> kLengths = {10, 256, 0};
  for (uint64_t i = 1; i <= 4; ++i) {
    ends.there->PostReceive({.wr_id = i, .pieces = {{kPlace.offset + 256 * (i - 1), 256}}});
  }
  std::string seen;
  for (const uint64_t length : kLengths) {
    std::vector<Piece> pieces;
    if (length > 0) pieces.push_back({0, length});
    ends.here->PostSend({.pieces = pieces});
    const std::optional<ibv_wc> sent = ends.here->AwaitSend(trial.limit());
    const std::optional<ibv_wc> wc = ends.there->AwaitReceive(trial.limit());
    if (!wc || wc->status != IBV_WC_SUCCESS || !sent) {
      seen += StatusOf(wc) + "; ";
    } else {
      seen += fmt::format("{} bytes by receive {}; ", wc->byte_len, wc->wr_id);
    }
  }
  trial.Expect("length-and-order",
               "10 bytes by receive 1; 256 bytes by receive 2; 0 bytes by receive 3; ", seen);
  trial.Expect("one-each", "no completion", StatusOf(ends.there->AwaitReceive(kQuiet)));
}

void DataPlacement(Trial& trial) {
  const Ends ends = trial.Connect();
  if (!ends) return;
  // What must not be taken by a WRITE or a READ.
  ends.there->PostReceive({.wr_id = 77, .pieces = {{3072, 256}}});
  trial.Expect("write", "in place", MoveOne(trial, ends, IBV_WR_RDMA_WRITE, 256, 1));
  trial.Expect("read", "in place", MoveOne(trial, ends, IBV_WR_RDMA_READ, 256, 2));
  trial.Expect("no-receive-taken", "no completion", StatusOf(ends.there->AwaitReceive(kQuiet)));
  ends.here->Fill(kMessage, 3);
  ends.here->PostSend({.wr_id = 3, .pieces = {kMessage}});
  const std::string pair = trial.AwaitBoth(ends);
  trial.Expect("send-takes-it", "requester SUCCESS, responder SUCCESS, in place",
               pair + (ends.there->FirstOther({3072, 256}, 3) ? ", elsewhere" : ", in place"));
}

void ScatterGather(Trial& trial) {
  if (trial.device().info().limits.max_sge < 3) {
    return trial.Skip("three", "the device takes fewer than 3 SGEs");
  }
  FreshQpOptions options = {};
  options.max_send_sge = 3;
  options.max_recv_sge = 3;
  const Ends ends = trial.Connect(options);
  if (!ends) return;
  // One pattern in three pieces that do not touch, gathered in this order.
  ends.here->Fill({0, 300}, 5);
  ends.there->PostReceive({.wr_id = 1, .pieces = {{2048, 100}, {2048 + 100, 0}, {2148, 200}}});
  ends.here->PostSend({.wr_id = 1, .pieces = {{0, 50}, {50, 0}, {50, 250}}});
  const std::string pair = trial.AwaitBoth(ends);
  trial.Expect("gather-and-scatter", "requester SUCCESS, responder SUCCESS, in place",
               pair + (ends.there->FirstOther({2048, 300}, 5) ? ", elsewhere" : ", in place"));
}

void MtuSizes(Trial& trial) {
  const uint64_t mtu = trial.stage().path().path_mtu_bytes;
  FreshQpOptions options = {};
  options.buffer_bytes = 64 * 1024;
  const Ends ends = trial.Connect(options);
  if (!ends) return;
  uint8_t seed = 1;
  for (const auto& [opcode, verb] :
       {std::pair(IBV_WR_SEND, "send"), std::pair(IBV_WR_RDMA_WRITE, "write"),
        std::pair(IBV_WR_RDMA_READ, "read")}) {
    for (const auto& [name, bytes] :
         {std::pair("1", uint64_t{1}), std::pair("mtu-1", mtu - 1), std::pair("mtu", mtu),
          std::pair("mtu+1", mtu + 1), std::pair("3mtu+1", 3 * mtu + 1)}) {
      if (!trial.ok()) return;
      trial.Expect(fmt::format("{}-{}", verb, name), "in place",
                   MoveOne(trial, ends, opcode, bytes, seed++));
    }
  }
}

void WriteImm(Trial& trial) {
  const Ends ends = trial.Connect();
  if (!ends) return;
  constexpr Piece kReceive = {.offset = 1024, .bytes = 256};
  ends.there->Fill(kReceive, 7);
  ends.there->PostReceive({.wr_id = 1, .pieces = {kReceive}});
  ends.here->Fill(kMessage, 1);
  ends.here->PostSend({.wr_id = 1,
                       .opcode = IBV_WR_RDMA_WRITE,
                       .pieces = {kMessage},
                       .remote_offset = kPlace.offset});
  const std::optional<ibv_wc> plain = ends.here->AwaitSend(trial.limit());
  trial.Expect("plain-takes-none", "SUCCESS, then no completion at the responder",
               fmt::format("{}, then {} at the responder", StatusOf(plain),
                           StatusOf(ends.there->AwaitReceive(kQuiet))));
  ends.here->Fill(kMessage, 2);
  ends.here->PostSend({.wr_id = 2,
                       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
                       .pieces = {kMessage},
                       .remote_offset = kPlace.offset,
                       .imm = 0x01020304});
  const std::optional<ibv_wc> sent = ends.here->AwaitSend(trial.limit());
  const std::optional<ibv_wc> received = ends.there->AwaitReceive(trial.limit());
  trial.Expect("completions",
               "requester RDMA_WRITE; responder RECV_RDMA_WITH_IMM, receive 1, 256 bytes, "
               "immediate 0x01020304",
               fmt::format("requester {}; responder {}, receive {}, {} bytes, {}", OpcodeText(sent),
                           OpcodeText(received), received ? received->wr_id : 0,
                           received ? received->byte_len : 0, ImmText(received)));
  trial.Expect("placement", "data at the address, the receive's own buffer untouched",
               fmt::format("data {}, the receive's own buffer {}",
                           ends.there->FirstOther(kPlace, 2) ? "elsewhere" : "at the address",
                           ends.there->FirstOther(kReceive, 7) ? "written" : "untouched"));
}

void ImmOrder(Trial& trial) {
  const Ends ends = trial.Connect();
  if (!ends) return;
  for (const auto& [part, opcode, imm, expected] :
       {std::tuple("send", IBV_WR_SEND_WITH_IMM, 0x01020304U, "immediate 0x01020304"),
        std::tuple("all-ones", IBV_WR_SEND_WITH_IMM, 0xffffffffU, "immediate 0xffffffff"),
        std::tuple("without", IBV_WR_SEND, 0x05060708U, "no immediate")}) {
    ends.there->PostReceive({.wr_id = 1, .pieces = {kPlace}});
    ends.here->PostSend({.opcode = opcode, .pieces = {kMessage}, .imm = imm});
    (void)ends.here->AwaitSend(trial.limit());
    trial.Expect(part, expected, ImmText(ends.there->AwaitReceive(trial.limit())));
  }
}

void Ordering(Trial& trial) {
  constexpr uint64_t kRequests = 32;
  constexpr std::array kOpcodes = {IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ,
                                   IBV_WR_RDMA_WRITE_WITH_IMM};
  const Ends ends = trial.Connect();
  if (!ends) return;
  for (uint64_t i = 1; i <= kRequests; ++i) ends.there->PostReceive({.wr_id = i});
  for (uint64_t i = 1; i <= kRequests; ++i) {
    const ibv_wr_opcode opcode = kOpcodes[i % kOpcodes.size()];
    std::vector<Piece> pieces;
    if (opcode != IBV_WR_SEND) pieces.push_back({0, 64});
    ends.here->PostSend(
        {.wr_id = i, .opcode = opcode, .pieces = pieces, .remote_offset = kPlace.offset});
  }
  uint64_t sent = 0;
  while (sent < kRequests) {
    const std::optional<ibv_wc> wc = ends.here->AwaitSend(trial.limit());
    if (!wc || wc->status != IBV_WC_SUCCESS || wc->wr_id != sent + 1) break;
    ++sent;
  }
  uint64_t received = 0;
  while (received < kRequests / 2) {
    const std::optional<ibv_wc> wc = ends.there->AwaitReceive(trial.limit());
    if (!wc || wc->status != IBV_WC_SUCCESS || wc->wr_id != received + 1) break;
    ++received;
  }
  trial.Expect("completions", "32 sends and 16 receives in the order of posting",
               fmt::format("{} sends and {} receives in the order of posting", sent, received));
  // A READ behind a WRITE sees it, and a message behind a WRITE finds its data in place.
  ends.here->Fill(kMessage, 4);
  ends.here->Fill(kPlace, 1);
  ends.here->PostSend({.wr_id = 1,
                       .opcode = IBV_WR_RDMA_WRITE,
                       .flags = 0,
                       .pieces = {kMessage},
                       .remote_offset = kPlace.offset});
  ends.here->PostSend(
      {.wr_id = 2, .opcode = IBV_WR_RDMA_READ, .pieces = {kPlace}, .remote_offset = kPlace.offset});
  const std::optional<ibv_wc> read = ends.here->AwaitSend(trial.limit());
  trial.Expect("read-sees-the-write-before", "SUCCESS, the new bytes",
               fmt::format("{}, {}", StatusOf(read),
                           ends.here->FirstOther(kPlace, 4) ? "others" : "the new bytes"));
  ends.here->Fill(kMessage, 6);
  ends.here->PostSend({.wr_id = 3,
                       .opcode = IBV_WR_RDMA_WRITE,
                       .flags = 0,
                       .pieces = {kMessage},
                       .remote_offset = kPlace.offset});
  ends.here->PostSend({.wr_id = 4});
  const std::string pair = trial.AwaitBoth(ends);
  trial.Expect("message-behind-a-write", "requester SUCCESS, responder SUCCESS, the new bytes",
               pair + (ends.there->FirstOther(kPlace, 6) ? ", others" : ", the new bytes"));
}

void WcFields(Trial& trial) {
  const Ends ends = trial.Connect();
  if (!ends) return;
  constexpr uint64_t kId = 0xfedcba9876543210;  // all 64 bits come back
  ends.there->PostReceive({.wr_id = kId, .pieces = {kPlace}});
  for (const auto& [part, opcode, expected] :
       {std::tuple("write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE),
        std::tuple("read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ),
        std::tuple("send", IBV_WR_SEND, IBV_WC_SEND)}) {
    ends.here->PostSend(
        {.wr_id = kId, .opcode = opcode, .pieces = {kMessage}, .remote_offset = kPlace.offset});
    const std::optional<ibv_wc> wc = ends.here->AwaitSend(trial.limit());
    const bool own = trial.ok() && wc && wc->wr_id == kId && wc->qp_num == ends.here->qp()->qp_num;
    trial.Expect(part, OpcodeName(expected) + ", wr_id and qp_num as posted",
                 OpcodeText(wc) + (own ? ", wr_id and qp_num as posted" : ", another request's"));
  }
  const std::optional<ibv_wc> received = ends.there->AwaitReceive(trial.limit());
  const bool own = received && received->wr_id == kId &&
                   received->qp_num == ends.here->fresh().remote().qps.front().qpn;
  trial.Expect(
      "receive", "RECV, 256 bytes, wr_id and qp_num as posted",
      fmt::format("{}, {} bytes, {}", OpcodeText(received), received ? received->byte_len : 0,
                  own ? "wr_id and qp_num as posted" : "another request's"));
  ends.here->PostSend(
      {.wr_id = kId, .opcode = IBV_WR_RDMA_WRITE, .pieces = {kMessage}, .rkey = Key::kWrong});
  const std::optional<ibv_wc> failed = ends.here->AwaitSend(trial.limit());
  const bool named =
      trial.ok() && failed && failed->wr_id == kId && failed->qp_num == ends.here->qp()->qp_num;
  trial.Expect("of-a-failure", "REM_ACCESS_ERR, wr_id and qp_num as posted",
               StatusOf(failed) + (named ? ", wr_id and qp_num as posted" : ", another request's"));
}

}  // namespace verbscope
