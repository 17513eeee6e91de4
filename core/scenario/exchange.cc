#include "core/scenario/exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/scenario/finding.h"
#include "core/scenario/imm_value.h"
#include "core/scenario/message_check.h"
#include "core/scenario/send_ledger.h"
#include "core/session/messages.h"

namespace verbscope {
namespace {

bool IsWrite(ibv_wr_opcode opcode) { return opcode == IBV_WR_RDMA_WRITE_WITH_IMM; }
bool HasImmediate(ibv_wr_opcode opcode) { return opcode != IBV_WR_SEND; }

// One side of an exchange.
class Exchange {
 public:
  Exchange(Stage& stage, const ExchangeKind& kind)
      : stage_(stage),
        kind_(kind),
        slots_(SlotsFor(kind.size_bytes)),
        slot_bytes_(SlotBytes(kind.size_bytes)),
        outgoing_(stage.requester() ? Direction::kRequest : Direction::kAnswer),
        incoming_(stage.requester() ? Direction::kAnswer : Direction::kRequest),
        route_(RouteOf(incoming_)) {}

  Status Run();

 private:
  // Answers are as far on as the messages that they answer.
  Route RouteOf(Direction direction) const {
    return {.direction = direction, .before = direction == Direction::kAnswer ? slots_ : 0};
  }
  // Where things lie in the buffer, on both sides alike: what is sent, what arrives, and the
  // receives' own buffers where they are not where the data arrives.
  size_t SendOffset(uint64_t number) const { return (number % slots_) * slot_bytes_; }
  size_t ArrivalOffset(uint64_t number) const { return (slots_ + number % slots_) * slot_bytes_; }
  size_t BaitOffset(uint64_t number) const { return (2 * slots_ + number % slots_) * slot_bytes_; }
  std::span<std::byte> Slot(size_t offset) const {
    return qp_->bytes().subspan(offset, slot_bytes_);
  }

  Status Prepare(int& refused);
  int PostReceive(uint64_t number);
  void Ready(uint64_t number);
  Status Fire();
  Status Burst();
  Status ToAndFro();
  template <class TickClock>
  Status Ask();
  Status Answer();
  // The due receive completion; false when there is none, or a failed one, and a finding instead.
  Expected<bool> Arrive(uint64_t number, ibv_wc& completion);
  void Verify(uint64_t number, const ibv_wc& completion);
  void VerifyMemory(uint64_t number);
  Status TakeBackReceive(uint64_t number);
  // Send completions until at most `most_left` are due.
  Status ReapSends(size_t most_left) { return sends_->Reap(stage_.CompletionLimit(), most_left); }
  Status Leftovers();
  void Note(Finding finding) {
    if (!finding_) finding_ = std::move(finding);
  }
  // Whether something is missing that nobody can wait for any longer.
  bool Stuck() const {
    const std::optional<Finding>& sends = sends_->finding();
    return (finding_ && finding_->missing) || (sends && sends->missing);
  }
  // Whether both sides found nothing so far.
  Expected<bool> BothWell();
  void Report(std::optional<Finding> first);
  void Skip(int refused, int refused_there);

  Stage& stage_;
  const ExchangeKind& kind_;
  const uint64_t slots_;
  const size_t slot_bytes_;
  const Direction outgoing_;
  const Direction incoming_;
  const Route route_;  // of what comes in
  FreshQp* qp_ = nullptr;
  std::optional<SendLedger> sends_;

  ibv_sge sge_ = {};
  ibv_send_wr request_ = {};
  uint64_t burst_ = 0;  // messages of the burst that were sent and verified
  std::optional<Finding> finding_;
  std::optional<Finding> peer_finding_;
  Histogram histogram_;
};

Status Exchange::Run() {
  int refused = 0;
  if (Status status = Prepare(refused); !status) return status;
  Expected<nlohmann::json> peer = stage_.Swap({{"refused", refused}});
  if (!peer) return Fail(std::move(peer.error()));
  const Expected<uint64_t> theirs = Unsigned(*peer, "refused", 0, UINT16_MAX);
  if (!theirs) return Fail(theirs.error());
  const int refused_there = static_cast<int>(*theirs);
  if (refused != 0 || refused_there != 0) {
    if (stage_.requester()) Skip(refused, refused_there);
    return {};
  }
  if (Status status = qp_->Connect(); !status) return status;
  if (Status status = Burst(); !status) return status;
  Expected<bool> well = BothWell();
  if (!well) return Fail(std::move(well.error()));
  if (*well) {
    if (Status status = ToAndFro(); !status) return status;
    if (Status status = Leftovers(); !status) return status;
    well = BothWell();
    if (!well) return Fail(std::move(well.error()));
  }
  if (stage_.requester()) Report(FirstOf(finding_, peer_finding_));
  return {};
}

Status Exchange::Prepare(int& refused) {
  const bool bait = IsWrite(kind_.opcode) && kind_.form == ReceiveForm::kBuffer;
  Expected<FreshQp*> qp = stage_.MakeQp({.buffer_bytes = (bait ? 3 : 2) * slots_ * slot_bytes_,
                                         .send_depth = static_cast<uint32_t>(slots_),
                                         .receive_depth = static_cast<uint32_t>(slots_)});
  if (!qp) return Fail(std::move(qp.error()));
  qp_ = *qp;
  sends_.emplace(**qp, IsWrite(kind_.opcode) ? IBV_WC_RDMA_WRITE : IBV_WC_SEND, kind_.size_bytes,
                 RouteOf(outgoing_));
  for (uint64_t i = 0; i < slots_; ++i) {
    ClearSlot(Slot(ArrivalOffset(i)), kind_.size_bytes);
    if (bait) ClearSlot(Slot(BaitOffset(i)), kind_.size_bytes);
    refused = PostReceive(i);
    if (refused == 0) continue;
    if (kind_.form != ReceiveForm::kBuffer) return {};
    return Fail(CallError(ErrorClass::kRun, "ibv_post_recv",
                          fmt::format("receive {} of {}", i + 1, slots_), refused));
  }
  return {};
}

int Exchange::PostReceive(uint64_t number) {
  const size_t offset = IsWrite(kind_.opcode) ? BaitOffset(number) : ArrivalOffset(number);
  ibv_sge sge = {};
  switch (kind_.form) {
    case ReceiveForm::kNoSge:
      return qp_->PostReceive(ReceiveId(number));
    case ReceiveForm::kBuffer:
      if (kind_.size_bytes == 0) return qp_->PostReceive(ReceiveId(number));
      sge = qp_->Sge(offset + kGuardBytes, kind_.size_bytes);
      break;
    case ReceiveForm::kEmptySge:
      sge = qp_->Sge(0, 0);
      break;
    case ReceiveForm::kNullSge:
      break;
  }
  return qp_->PostReceive(ReceiveId(number), {&sge, 1});
}

// Everything of the next message but its post.
void Exchange::Ready(uint64_t number) {
  const size_t offset = SendOffset(number) + kGuardBytes;
  FillData(qp_->bytes().subspan(offset, kind_.size_bytes), number, outgoing_);
  sge_ = qp_->Sge(offset, kind_.size_bytes);
  request_ = {};
  request_.wr_id = SendId(number);
  request_.sg_list = kind_.size_bytes > 0 ? &sge_ : nullptr;
  request_.num_sge = kind_.size_bytes > 0 ? 1 : 0;
  request_.opcode = kind_.opcode;
  request_.send_flags = IBV_SEND_SIGNALED;
  if (HasImmediate(kind_.opcode)) request_.imm_data = ToWire(ImmediateOf(number, outgoing_));
  if (IsWrite(kind_.opcode)) {
    request_.wr.rdma.remote_addr = qp_->remote().address + ArrivalOffset(number) + kGuardBytes;
    request_.wr.rdma.rkey = qp_->remote().rkey;
  }
}

Status Exchange::Fire() {
  const int result = qp_->PostSend(request_);
  if (result != 0) {
    return Fail(CallError(ErrorClass::kRun, "ibv_post_send",
                          fmt::format("message {}", NumberOfId(request_.wr_id)), result));
  }
  sends_->Posted(NumberOfId(request_.wr_id));
  return {};
}

// As many messages as there are receives, with nobody waiting in between: only here can
// completions come out of order.
Status Exchange::Burst() {
  if (stage_.requester()) {
    for (uint64_t i = 0; i < slots_; ++i) {
      Ready(i);
      if (Status status = Fire(); !status) return status;
    }
    burst_ = slots_;
    return ReapSends(0);
  }
  std::vector<ibv_wc> arrived;
  std::vector<bool> seen(slots_);
  while (arrived.size() < slots_) {
    Expected<std::optional<ibv_wc>> next = qp_->AwaitReceive(stage_.CompletionLimit());
    if (!next) return Fail(std::move(next.error()));
    if (!*next) break;
    if ((*next)->status != IBV_WC_SUCCESS) {
      Note(route_.Bad(NumberOfId((*next)->wr_id), (*next)->status));
      return {};
    }
    const uint64_t number = NumberOfId((*next)->wr_id);
    if ((*next)->wr_id == ReceiveId(number) && number < slots_) seen[number] = true;
    arrived.push_back(**next);
  }
  if (arrived.size() < slots_) {
    const auto missing = std::ranges::find(seen, false) - seen.begin();
    Note(route_.Lost(static_cast<uint64_t>(missing), "receive completion",
                     stage_.CompletionLimit().count()));
    return {};
  }
  for (uint64_t i = 0; i < slots_; ++i) Verify(i, arrived[i]);
  for (uint64_t i = 0; i < slots_ && !finding_; ++i) {
    if (Status status = TakeBackReceive(i); !status) return status;
  }
  burst_ = slots_;
  return {};
}

Status Exchange::ToAndFro() {
  if (!stage_.requester()) return Answer();
  return stage_.clock().Dispatch([this](auto counter) { return Ask<decltype(counter)>(); });
}

template <class TickClock>
Status Exchange::Ask() {
  const TickScale half = stage_.clock().scale(0.5);
  for (uint64_t i = 0; i < stage_.iterations(); ++i) {
    if (Status status = ReapSends(slots_ - 1); !status) return status;
    if (Stuck()) return {};
    Ready(burst_ + i);
    ibv_wc completion;
    const uint64_t start = TickClock::Now();
    if (Status status = Fire(); !status) return status;
    Expected<bool> arrived = Arrive(i, completion);
    const uint64_t end = TickClock::Now();
    if (!arrived) return Fail(std::move(arrived.error()));
    if (!*arrived) return {};
    histogram_.Record(half.Nanoseconds(end - start));
    Verify(i, completion);
    if (Status status = TakeBackReceive(i); !status) return status;
  }
  return {};
}

// The answer goes before the message is verified: the requester's next one lands elsewhere, and the
// one after it is not sent before the next answer.
Status Exchange::Answer() {
  Ready(0);
  for (uint64_t i = 0; i < stage_.iterations(); ++i) {
    ibv_wc completion;
    Expected<bool> arrived = Arrive(burst_ + i, completion);
    if (!arrived) return Fail(std::move(arrived.error()));
    if (!*arrived) return {};
    if (Status status = Fire(); !status) return status;
    Verify(burst_ + i, completion);
    if (Status status = TakeBackReceive(burst_ + i); !status) return status;
    if (Status status = ReapSends(slots_ - 1); !status) return status;
    if (Stuck()) return {};
    Ready(i + 1);
  }
  return {};
}

Expected<bool> Exchange::Arrive(uint64_t number, ibv_wc& completion) {
  Expected<std::optional<ibv_wc>> next = qp_->AwaitReceive(stage_.CompletionLimit());
  if (!next) return Fail(std::move(next.error()));
  if (!*next) {
    // A failed send of this side explains the silence of the other.
    if (Status status = sends_->Reap(std::chrono::nanoseconds(0), slots_); !status) {
      return Fail(std::move(status.error()));
    }
    Note(route_.Lost(number, "receive completion", stage_.CompletionLimit().count()));
    return false;
  }
  completion = **next;
  if (completion.status == IBV_WC_SUCCESS) return true;
  Note(route_.Bad(number, completion.status));
  return false;
}

void Exchange::Verify(uint64_t number, const ibv_wc& completion) {
  ExpectedReceive expected{
      .number = number,
      .qp_num = qp_->qp()->qp_num,
      .opcode = IsWrite(kind_.opcode) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
      .byte_len = static_cast<uint32_t>(kind_.size_bytes),
      .direction = incoming_};
  if (HasImmediate(kind_.opcode)) expected.immediate = ImmediateOf(number, incoming_);
  if (auto mismatch = CheckReceive(completion, expected)) Note(route_.Wrong(number, *mismatch));
  VerifyMemory(number);
}

void Exchange::VerifyMemory(uint64_t number) {
  const std::span<std::byte> arrival = Slot(ArrivalOffset(number));
  if (auto mismatch = CheckSlot(arrival, kind_.size_bytes, number, incoming_)) {
    Note(route_.Wrong(number, *mismatch));
  }
  if (!IsWrite(kind_.opcode) || kind_.form != ReceiveForm::kBuffer) return;
  if (auto mismatch = CheckUntouched(Slot(BaitOffset(number)), kind_.size_bytes)) {
    Note(route_.Wrong(number, *mismatch));
  }
}

// The place is emptied and the receive posted again, for the message `slots_` further on.
Status Exchange::TakeBackReceive(uint64_t number) {
  ClearSlot(Slot(ArrivalOffset(number)), kind_.size_bytes);
  const int result = PostReceive(number + slots_);
  if (result == 0) return {};
  return Fail(CallError(ErrorClass::kRun, "ibv_post_recv",
                        fmt::format("receive {}", number + slots_), result));
}

// Nothing may be owed, and nothing may have come that nobody sent for.
Status Exchange::Leftovers() {
  if (!Stuck()) {
    if (Status status = ReapSends(0); !status) return status;
  }
  // Both are through: what is not here now was never sent.
  if (Status status = stage_.Meet("quiet"); !status) return status;
  if (finding_) return {};
  Expected<std::optional<ibv_wc>> extra = qp_->AwaitReceive(std::chrono::nanoseconds(0));
  if (!extra) return Fail(std::move(extra.error()));
  if (!*extra) return {};
  Note(
      {.order = slots_ + stage_.iterations(),
       .expected = "one receive completion for each message",
       .observed = fmt::format("one more after the last message, wr_id 0x{:016x}", (*extra)->wr_id),
       .why = "a completion came twice, or a message took two receives"});
  return {};
}

Expected<bool> Exchange::BothWell() {
  finding_ = Earlier(std::move(finding_), sends_->finding());
  Expected<nlohmann::json> peer = stage_.Swap(ToJson(finding_));
  if (!peer) return Fail(std::move(peer.error()));
  peer_finding_ = FindingFromJson(*peer);
  return !finding_ && !peer_finding_;
}

void Exchange::Skip(int refused, int refused_there) {
  stage_.Check({.name = kind_.name,
                .status = "skip",
                .expected = "",
                .observed = "",
                .why = fmt::format("ibv_post_recv takes no {} at the {}: {}", FormText(kind_.form),
                                   refused != 0 ? "requester" : "responder",
                                   ErrnoText(refused != 0 ? refused : refused_there)),
                .source = "ibv_post_recv(3)"});
}

void Exchange::Report(std::optional<Finding> first) {
  CheckRow row{.name = kind_.name, .status = "pass", .source = kind_.source};
  const std::string_view opcode = IsWrite(kind_.opcode) ? "RECV_RDMA_WITH_IMM" : "RECV";
  const std::string_view flag =
      HasImmediate(kind_.opcode) ? "the sender's immediate" : "no immediate";
  if (first) {
    row.status = "fail";
    row.expected = first->expected;
    row.observed = first->observed;
    row.why = first->why;
    if (first->missing) stage_.GiveUp(first->observed);
  } else {
    row.expected = fmt::format(
        "SUCCESS at both ends, opcode {}, {}, byte_len {}, one receive each in order, data in its "
        "place only",
        opcode, flag, kind_.size_bytes);
    row.observed = fmt::format(
        "requester SUCCESS, responder SUCCESS, opcode {}, {}, byte_len {}, wr_id of receives 0 to "
        "{} in order; {} in a burst, {} to and fro",
        opcode, flag, kind_.size_bytes, burst_ + stage_.iterations() - 1, burst_,
        stage_.iterations());
    Point point;
    point.op = IsWrite(kind_.opcode) ? "write" : "send";
    point.size_bytes = kind_.size_bytes;
    if (HasImmediate(kind_.opcode)) point.imm = true;
    point.variant = FormText(kind_.form);
    stage_.Measured(std::move(point), histogram_, "half_round_trip", "recv_completion");
  }
  stage_.Check(std::move(row));
}

}  // namespace

Scenario VerifiedExchange(ExchangeKind kind) {
  const std::string name = kind.name;
  const auto run = [kind = std::move(kind)](Stage& stage) { return Exchange(stage, kind).Run(); };
  return {.name = name, .requester = run, .responder = run};
}

}  // namespace verbscope
