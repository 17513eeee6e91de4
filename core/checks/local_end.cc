#include "core/checks/local_end.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/deadline.h"

namespace verbscope {
namespace {

// Changes what names the region, not only the part of a key that its owner chooses.
constexpr uint32_t kKeyChange = 0x5A5A5A00;

constexpr std::chrono::milliseconds kEventNap(2);

bool IsAtomic(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

}  // namespace

Expected<std::optional<std::string>> AsyncEvents::Await(const std::string& prefix,
                                                        std::chrono::nanoseconds limit) {
  const Deadline deadline = Deadline::After(limit);
  for (;;) {
    for (std::string& event : stage_.TakeAsyncEvents()) seen_.push_back(std::move(event));
    const auto found = std::ranges::find_if(
        seen_, [&prefix](const std::string& event) { return event.starts_with(prefix); });
    if (found != seen_.end()) {
      std::string event = std::move(*found);
      seen_.erase(found);
      return event;
    }
    if (std::optional<Error> error = stage_.events_error()) return Fail(std::move(*error));
    if (deadline.Passed()) return std::nullopt;
    if (Status status = stage_.Rest(kEventNap); !status) return Fail(std::move(status.error()));
  }
}

bool LocalEnd::Inside(Piece piece) {
  const size_t size = qp_.bytes().size();
  if (piece.offset <= size && piece.bytes <= size - piece.offset) return latch_.ok();
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = fmt::format("a check asks for {} bytes at {} of a buffer of {}", piece.bytes,
                              piece.offset, size);
  error.next_step = "run the same verbscope version on both hosts";
  latch_.Keep(Fail(std::move(error)));
  return false;
}

uint32_t LocalEnd::LocalKey(Key key) const {
  switch (key) {
    case Key::kRight:
      break;
    case Key::kWrong:
      return qp_.region()->lkey ^ kKeyChange;
    case Key::kForeign:
      return qp_.foreign_region() != nullptr ? qp_.foreign_region()->lkey : 0;
  }
  return qp_.region()->lkey;
}

std::vector<ibv_sge> LocalEnd::Sges(const std::vector<Piece>& pieces, Key lkey) const {
  std::vector<ibv_sge> sges;
  for (const Piece& piece : pieces) {
    ibv_sge sge = qp_.Sge(piece.offset, piece.bytes);
    sge.lkey = LocalKey(lkey);
    sges.push_back(sge);
  }
  return sges;
}

ibv_send_wr LocalEnd::Request(const SendSpec& spec, std::vector<ibv_sge>& sges) const {
  sges = Sges(spec.pieces, spec.lkey);
  ibv_send_wr request = {};
  request.wr_id = spec.wr_id;
  request.sg_list = sges.empty() ? nullptr : sges.data();
  request.num_sge = static_cast<int>(sges.size());
  request.opcode = spec.opcode;
  request.send_flags = spec.flags;
  request.imm_data = htonl(spec.imm);
  const uint64_t address = qp_.remote().address + static_cast<uint64_t>(spec.remote_offset);
  const uint32_t rkey = spec.rkey == Key::kRight   ? qp_.remote().rkey
                        : spec.rkey == Key::kWrong ? qp_.remote().rkey ^ kKeyChange
                                                   : foreign_rkey_;
  if (IsAtomic(spec.opcode)) {
    request.wr.atomic = {
        .remote_addr = address, .compare_add = spec.compare_add, .swap = spec.swap, .rkey = rkey};
  } else {
    request.wr.rdma = {.remote_addr = address, .rkey = rkey};
  }
  return request;
}

int LocalEnd::PostReceive(const ReceiveSpec& spec) {
  if (!latch_.ok()) return 0;
  std::vector<ibv_sge> sges = Sges(spec.pieces, spec.lkey);
  return qp_.PostReceive(spec.wr_id, sges);
}

int LocalEnd::PostSend(const SendSpec& spec) {
  if (!latch_.ok()) return 0;
  std::vector<ibv_sge> sges;
  ibv_send_wr request = Request(spec, sges);
  return qp_.PostSend(request);
}

std::optional<ibv_wc> LocalEnd::AwaitSend(std::chrono::nanoseconds limit) {
  if (!latch_.ok()) return std::nullopt;
  return latch_.Take(qp_.AwaitSend(limit));
}

std::optional<ibv_wc> LocalEnd::AwaitReceive(std::chrono::nanoseconds limit) {
  if (!latch_.ok()) return std::nullopt;
  return latch_.Take(qp_.AwaitReceive(limit));
}

ibv_qp_state LocalEnd::AwaitState(ibv_qp_state wanted, std::chrono::nanoseconds limit) {
  if (!latch_.ok()) return IBV_QPS_RESET;
  return latch_.Take(qp_.AwaitState(wanted, limit));
}

void LocalEnd::ToError() {
  if (!latch_.ok()) return;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  latch_.Keep(stage_.device().ModifyQp(qp(), attributes, IBV_QP_STATE, "any state to ERR"));
}

void LocalEnd::Fill(Piece piece, uint8_t seed) {
  if (!Inside(piece)) return;
  const auto bytes = qp_.bytes().subspan(piece.offset, piece.bytes);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = PatternByte(i, seed);
}

std::optional<uint64_t> LocalEnd::FirstOther(Piece piece, uint8_t seed) {
  if (!Inside(piece)) return std::nullopt;
  const auto bytes = qp_.bytes().subspan(piece.offset, piece.bytes);
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != PatternByte(i, seed)) return i;
  }
  return std::nullopt;
}

void LocalEnd::SetWord(uint64_t offset, uint64_t value) {
  if (!Inside({offset, sizeof(value)})) return;
  std::memcpy(qp_.bytes().data() + offset, &value, sizeof(value));
}

uint64_t LocalEnd::Word(uint64_t offset) {
  uint64_t value = 0;
  if (!Inside({offset, sizeof(value)})) return 0;
  std::memcpy(&value, qp_.bytes().data() + offset, sizeof(value));
  return value;
}

std::optional<std::string> LocalEnd::AwaitAsyncEvent(const std::string& prefix,
                                                     std::chrono::nanoseconds limit) {
  if (!latch_.ok()) return std::nullopt;
  return latch_.Take(events_.Await(prefix, limit));
}

bool LocalEnd::LoseNext(LossyPacket kind, uint32_t count) {
  if (!stage_.device().LosesOnDemand()) return false;
  if (latch_.ok()) latch_.Keep(stage_.device().LoseNext(kind, count));
  return true;
}

int LocalEnd::SetSrqLimit(uint32_t limit) {
  if (!latch_.ok() || qp_.shared_queue() == nullptr) return EINVAL;
  const Status status = stage_.device().SetSrqLimit(qp_.shared_queue(), limit);
  if (status) return 0;
  return status.error().errno_value != 0 ? status.error().errno_value : EINVAL;
}

}  // namespace verbscope
