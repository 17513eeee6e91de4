#include "core/scenario/attempt.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/causes/completion_status.h"
#include "core/record/record_json.h"
#include "core/scenario/expectations.h"
#include "core/scenario/imm_value.h"
#include "core/scenario/message_check.h"
#include "core/session/messages.h"

namespace verbscope {
namespace {

using std::chrono::milliseconds;

// How long to look for a completion that must not come.
constexpr milliseconds kQuiet(20);
constexpr milliseconds kTellEvery(5000);
constexpr const char* kErrorStateSource =
    "IBTA vol. 1, 10.3.1: in the error state requests are flushed, and a reset leaves it";
constexpr uint64_t kNumber = 2;  // of the message: its immediate is an ordinary one

bool HasImmediate(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND_WITH_IMM || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}
bool IsSend(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}
bool IsRead(ibv_wr_opcode opcode) { return opcode == IBV_WR_RDMA_READ; }

std::string StatusText(const std::optional<ibv_wc_status>& status) {
  return status ? NameOf(*status) : "no completion";
}

// What the responder saw.
struct Seen {
  std::optional<ibv_wc_status> status = {};
  std::string detail = {};    // of a good completion: opcode, byte_len, wr_id
  std::string mismatch = {};  // of a good completion, or of its memory; empty: none
  std::string state = {};
  std::string later = {};  // status of the receive posted afterwards
};

class Attempting {
 public:
  Attempting(Stage& stage, const AttemptKind& kind) : stage_(stage), kind_(kind) {}

  Status Request();
  Status Respond();

 private:
  Status Open();
  std::span<std::byte> Arrival() const { return qp_->bytes().subspan(slot_, slot_); }
  int Post(ibv_wr_opcode opcode, uint64_t size, uint64_t number);
  Expected<ibv_wc> AwaitSend(std::chrono::nanoseconds limit, uint64_t number);
  Status LookAtReceive(Seen& seen);
  void VerifyReceive(const ibv_wc& completion, Seen& seen);
  Status LookAtAftermath(Seen& seen);
  void CheckPair(ibv_wc_status status, const Seen& seen);
  Status CheckStates(const Seen& seen);
  Status Recover();
  Status Measure();
  Status HearMeasuring();
  std::chrono::nanoseconds Limit() const;
  void Row(std::string_view suffix, std::string_view rule, std::string expected,
           std::string observed);

  Stage& stage_;
  const AttemptKind& kind_;
  const size_t slot_ = SlotBytes(std::max(kind_.size_bytes, kind_.receive_bytes.value_or(0)));
  FreshQp* qp_ = nullptr;
};

// The queue pair and the memory: what is sent, then what arrives.
Status Attempting::Open() {
  Expected<FreshQp*> qp = stage_.MakeQp({.buffer_bytes = 2 * slot_,
                                         .send_depth = 4,
                                         .receive_depth = 4,
                                         .rnr_retry = kind_.rnr_retry,
                                         .rnr_timer_code = kind_.rnr_timer_code});
  if (!qp) return Fail(std::move(qp.error()));
  qp_ = *qp;
  ClearSlot(Arrival(), kind_.size_bytes);
  if (stage_.requester() || !kind_.receive_bytes) return qp_->Connect();
  ibv_sge sge = qp_->Sge(slot_ + kGuardBytes, *kind_.receive_bytes);
  const std::span<ibv_sge> sges =
      *kind_.receive_bytes > 0 ? std::span(&sge, 1) : std::span<ibv_sge>();
  if (const int result = qp_->PostReceive(ReceiveId(kNumber), sges); result != 0) {
    return Fail(CallError(ErrorClass::kRun, "ibv_post_recv",
                          fmt::format("{} bytes", *kind_.receive_bytes), result));
  }
  return qp_->Connect();
}

// A READ fetches the responder's sent part, which holds a message like any other.
int Attempting::Post(ibv_wr_opcode opcode, uint64_t size, uint64_t number) {
  const size_t local = (IsRead(opcode) ? slot_ : 0) + kGuardBytes;
  const size_t remote = (IsRead(opcode) ? 0 : slot_) + kGuardBytes;
  if (!IsRead(opcode)) FillData(qp_->bytes().subspan(local, size), number, Direction::kRequest);
  ibv_sge sge = qp_->Sge(local, size);
  ibv_send_wr request = {};
  request.wr_id = SendId(number);
  request.sg_list = size > 0 ? &sge : nullptr;
  request.num_sge = size > 0 ? 1 : 0;
  request.opcode = opcode;
  request.send_flags = IBV_SEND_SIGNALED;
  if (HasImmediate(opcode)) request.imm_data = ToWire(ImmediateOf(number, Direction::kRequest));
  if (!IsSend(opcode)) {
    request.wr.rdma.remote_addr = qp_->remote().address + remote;
    request.wr.rdma.rkey = qp_->remote().rkey ^ (kind_.bad_rkey ? 0x5A5A5A00U : 0U);
  }
  return qp_->PostSend(request);
}

std::chrono::nanoseconds Attempting::Limit() const { return stage_.CompletionLimit(); }

// kRun when it does not come at all: nothing can be said of a device that keeps silent.
Expected<ibv_wc> Attempting::AwaitSend(std::chrono::nanoseconds limit, uint64_t number) {
  Expected<std::optional<ibv_wc>> next = qp_->AwaitSend(limit);
  if (!next) return Fail(std::move(next.error()));
  if (*next && (*next)->wr_id == SendId(number)) return **next;
  if (*next) {
    Error error;
    error.error_class = ErrorClass::kVerification;
    error.message =
        fmt::format("step {}: the completion awaited for request {} has wr_id {:#x}, not {:#x}",
                    stage_.name(), number, (*next)->wr_id, SendId(number));
    error.cause = "the device completed something else, or something twice";
    error.next_step = "run it again; compare with another device, driver or firmware";
    return Fail(std::move(error));
  }
  Error error;
  error.error_class = ErrorClass::kRun;
  error.message = fmt::format("step {}: request {} has no completion within {}", stage_.name(),
                              number, DurationText(limit.count()));
  error.cause = "the device lost the request, or retries for longer than it should";
  error.next_step = "look at the kernel log (dmesg) of both hosts, and at the device's firmware";
  return Fail(std::move(error));
}

Status Attempting::Request() {
  if (Status status = Open(); !status) return status;
  if (const int result = Post(kind_.opcode, kind_.size_bytes, kNumber); result != 0) {
    return Fail(CallError(ErrorClass::kRun, "ibv_post_send", kind_.name, result));
  }
  Expected<ibv_wc> completion = AwaitSend(Limit(), kNumber);
  if (!completion) return Fail(std::move(completion.error()));
  if (Status status = stage_.Meet("done"); !status) return status;
  Expected<nlohmann::json> told = stage_.Hear();
  if (!told) return Fail(std::move(told.error()));
  const auto text = [&told](const char* member) {
    const auto found = told->find(member);
    return found != told->end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  Seen seen{.detail = text("detail"),
            .mismatch = text("mismatch"),
            .state = text("state"),
            .later = text("later")};
  if (told->contains("status")) {
    const Expected<uint64_t> status = Unsigned(*told, "status", 0, UINT16_MAX);
    if (!status) return Fail(status.error());
    seen.status = static_cast<ibv_wc_status>(*status);
  }
  CheckPair(completion->status, seen);
  if (kind_.responder_state) {
    if (Status status = CheckStates(seen); !status) return status;
  }
  if (kind_.recovers) {
    Row("-later-receive", kLateReceive, "WR_FLUSH_ERR", Printable(seen.later));
    if (Status status = Recover(); !status) return status;
  }
  if (!kind_.measure) return {};
  if (completion->status == IBV_WC_SUCCESS) {
    if (Status status = Measure(); !status) return status;
  }
  return stage_.Tell({{"measuring", false}});
}

Status Attempting::Respond() {
  if (Status status = Open(); !status) return status;
  if (Status status = stage_.Meet("done"); !status) return status;
  Seen seen;
  if (Status status = LookAtReceive(seen); !status) return status;
  if (kind_.responder_state) {
    Expected<ibv_qp_state> state = qp_->AwaitState(*kind_.responder_state, Limit());
    if (!state) return Fail(std::move(state.error()));
    seen.state = QpStateName(*state);
  }
  if (kind_.recovers) {
    if (Status status = LookAtAftermath(seen); !status) return status;
  }
  nlohmann::json told = {{"detail", seen.detail},
                         {"mismatch", seen.mismatch},
                         {"state", seen.state},
                         {"later", seen.later}};
  if (seen.status) told["status"] = static_cast<unsigned>(*seen.status);
  if (Status status = stage_.Tell(told); !status) return status;
  if (kind_.measure) return HearMeasuring();
  return kind_.recovers ? Recover() : Status();
}

// The requester has its completion: what is due here is due now.
Status Attempting::LookAtReceive(Seen& seen) {
  Expected<std::optional<ibv_wc>> next =
      qp_->AwaitReceive(kind_.responder ? Limit() : std::chrono::nanoseconds(kQuiet));
  if (!next) return Fail(std::move(next.error()));
  if (*next) {
    seen.status = (*next)->status;
    if ((*next)->wr_id != ReceiveId(kNumber)) {
      seen.mismatch =
          fmt::format("wr_id is 0x{:016x}, expected 0x{:016x}", (*next)->wr_id, ReceiveId(kNumber));
    } else if ((*next)->status == IBV_WC_SUCCESS) {
      VerifyReceive(**next, seen);
    }
  }
  // A failed SEND may have left the beginning of its data in the receive's own buffer.
  const bool landed = kind_.requester == IBV_WC_SUCCESS && !IsRead(kind_.opcode);
  const auto wrong =
      landed ? CheckSlot(Arrival(), kind_.size_bytes, kNumber, Direction::kRequest) : std::nullopt;
  if (wrong && seen.mismatch.empty()) {
    seen.mismatch = fmt::format("{} is {}, expected {}", wrong->what, wrong->got, wrong->expected);
  }
  return {};
}

void Attempting::VerifyReceive(const ibv_wc& completion, Seen& seen) {
  seen.detail = fmt::format("opcode {}, byte_len {}, wr_id as posted",
                            OpcodeName(completion.opcode), completion.byte_len);
  ExpectedReceive expected{.number = kNumber,
                           .qp_num = qp_->qp()->qp_num,
                           .opcode = IsSend(kind_.opcode) ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
                           .byte_len = static_cast<uint32_t>(kind_.size_bytes)};
  if (HasImmediate(kind_.opcode)) expected.immediate = ImmediateOf(kNumber, Direction::kRequest);
  if (const auto wrong = CheckReceive(completion, expected)) {
    seen.mismatch = fmt::format("{} is {}, expected {}", wrong->what, wrong->got, wrong->expected);
  }
}

// A receive long enough, too late: it is flushed, since the queue pair is in error.
Status Attempting::LookAtAftermath(Seen& seen) {
  ibv_sge sge = qp_->Sge(slot_ + kGuardBytes, kind_.size_bytes);
  const int result = qp_->PostReceive(ReceiveId(kNumber + 1), {&sge, 1});
  if (result != 0) {
    seen.later = "refused by ibv_post_recv: " + ErrnoText(result);
    return {};
  }
  Expected<std::optional<ibv_wc>> next = qp_->AwaitReceive(Limit());
  if (!next) return Fail(std::move(next.error()));
  seen.later = *next ? NameOf((*next)->status) : "no completion";
  return {};
}

void Attempting::Row(std::string_view suffix, std::string_view rule, std::string expected,
                     std::string observed) {
  CheckRow row{.name = kind_.name + std::string(suffix),
               .expected = std::move(expected),
               .observed = std::move(observed),
               .source = kErrorStateSource};
  Judge(stage_.responder_kind(), rule, row);
  stage_.Check(std::move(row));
}

void Attempting::CheckPair(ibv_wc_status status, const Seen& seen) {
  CheckRow row{.name = kind_.name,
               .expected = fmt::format("requester {}, responder {}", NameOf(kind_.requester),
                                       StatusText(kind_.responder)),
               .observed = fmt::format("requester {}, responder {}", NameOf(status),
                                       StatusText(seen.status)),
               .source = kind_.source};
  Judge(stage_.responder_kind(), kind_.rule, row);
  if (!seen.detail.empty()) {
    row.observed += ", " + Printable(seen.detail);
    if (row.status == "pass") {
      row.expected += fmt::format(", byte_len {}, wr_id as posted", kind_.size_bytes);
    }
  }
  if (!seen.mismatch.empty()) {
    row.status = "fail";
    row.observed += "; " + Printable(seen.mismatch);
  }
  stage_.Check(std::move(row));
}

Status Attempting::CheckStates(const Seen& seen) {
  Expected<ibv_qp_state> state = qp_->AwaitState(IBV_QPS_ERR, Limit());
  if (!state) return Fail(std::move(state.error()));
  Row("-qp-state", "",
      fmt::format("requester ERR, responder {}", QpStateName(*kind_.responder_state)),
      fmt::format("requester {}, responder {}", QpStateName(*state), Printable(seen.state)));
  return {};
}

// Both queue pairs from ERR to RESET and to RTS, and a message that arrives.
Status Attempting::Recover() {
  if (Status status = qp_->Reset(); !status) return status;
  if (!stage_.requester()) {
    ClearSlot(Arrival(), kind_.size_bytes);
    ibv_sge sge = qp_->Sge(slot_ + kGuardBytes, kind_.size_bytes);
    if (const int result = qp_->PostReceive(ReceiveId(kNumber), {&sge, 1}); result != 0) {
      return Fail(CallError(ErrorClass::kRun, "ibv_post_recv", "after reset", result));
    }
    if (Status status = qp_->Connect(); !status) return status;
    Expected<std::optional<ibv_wc>> next = qp_->AwaitReceive(Limit());
    if (!next) return Fail(std::move(next.error()));
    std::string saw = *next ? NameOf((*next)->status) : "no completion";
    if (CheckSlot(Arrival(), kind_.size_bytes, kNumber + 2, Direction::kRequest)) {
      saw += ", other data than was sent";
    }
    return stage_.Tell({{"saw", saw}});
  }
  if (Status status = qp_->Connect(); !status) return status;
  if (const int result = Post(IBV_WR_SEND, kind_.size_bytes, kNumber + 2); result != 0) {
    return Fail(CallError(ErrorClass::kRun, "ibv_post_send", "after reset", result));
  }
  Expected<ibv_wc> completion = AwaitSend(Limit(), kNumber + 2);
  if (!completion) return Fail(std::move(completion.error()));
  Expected<nlohmann::json> told = stage_.Hear();
  if (!told) return Fail(std::move(told.error()));
  const auto saw = told->find("saw");
  Row("-reset", "", "requester SUCCESS, responder SUCCESS",
      fmt::format(
          "requester {}, responder {}", NameOf(completion->status),
          saw != told->end() && saw->is_string() ? Printable(saw->get<std::string>()) : ""));
  return {};
}

// The responder's program takes no part, but has to hear that it goes on: its waits have limits.
Status Attempting::HearMeasuring() {
  for (;;) {
    Expected<nlohmann::json> told = stage_.Hear();
    if (!told) return Fail(std::move(told.error()));
    const auto measuring = told->find("measuring");
    if (measuring == told->end() || *measuring != true) return {};
  }
}

Status Attempting::Measure() {
  Histogram histogram;
  Deadline tell = Deadline::After(kTellEvery);
  for (uint64_t i = 0; i < stage_.iterations(); ++i) {
    const uint64_t start = stage_.Now();
    if (const int result = Post(kind_.opcode, kind_.size_bytes, kNumber); result != 0) {
      return Fail(CallError(ErrorClass::kRun, "ibv_post_send", kind_.name, result));
    }
    Expected<ibv_wc> completion = AwaitSend(Limit(), kNumber);
    const int64_t ns = stage_.NsSince(start);
    if (!completion) return Fail(std::move(completion.error()));
    if (completion->status != IBV_WC_SUCCESS) {
      return Fail(qp_->Explain(*completion, kind_.name, kind_.size_bytes, i + 2));
    }
    histogram.Record(ns);
    if (!tell.Passed()) continue;
    if (Status status = stage_.Tell({{"measuring", true}}); !status) return status;
    tell = Deadline::After(kTellEvery);
  }
  Point point;
  point.op = IsRead(kind_.opcode) ? "read" : "write";
  point.size_bytes = kind_.size_bytes;
  stage_.Measured(std::move(point), histogram, "round_trip", "send_completion");
  return {};
}

}  // namespace

Scenario Attempt(const AttemptKind& kind) {
  const std::string name = kind.name;
  return {.name = name,
          .requester = [kind](Stage& stage) { return Attempting(stage, kind).Request(); },
          .responder = [kind](Stage& stage) { return Attempting(stage, kind).Respond(); }};
}

}  // namespace verbscope
