// The control of a WRITE with immediate: the same without one.
#include <fmt/core.h>

#include <string>
#include <utility>

#include "core/scenario/exchange.h"
#include "core/scenario/finding.h"
#include "core/scenario/message_check.h"

namespace verbscope {
namespace {

FreshQpOptions Options(uint64_t size_bytes) {
  const uint64_t slots = SlotsFor(size_bytes);
  return {.buffer_bytes = 2 * slots * SlotBytes(size_bytes),
          .send_depth = static_cast<uint32_t>(slots + 1),
          .receive_depth = 2};
}

size_t Arrival(uint64_t number, uint64_t size_bytes) {
  return (SlotsFor(size_bytes) + number) * SlotBytes(size_bytes);
}

std::string Label(uint64_t number) { return fmt::format("message {}", number); }

int Post(FreshQp& qp, uint64_t number, uint64_t size_bytes, bool write) {
  const size_t offset = number * SlotBytes(size_bytes) + kGuardBytes;
  ibv_sge sge = {};
  ibv_send_wr request = {};
  request.wr_id = SendId(number);
  request.opcode = write ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  if (write) {
    FillData(qp.bytes().subspan(offset, size_bytes), number, Direction::kRequest);
    sge = qp.Sge(offset, size_bytes);
    request.sg_list = size_bytes > 0 ? &sge : nullptr;
    request.num_sge = size_bytes > 0 ? 1 : 0;
    request.wr.rdma.remote_addr = qp.remote().address + Arrival(number, size_bytes) + kGuardBytes;
    request.wr.rdma.rkey = qp.remote().rkey;
  }
  return qp.PostSend(request);
}

Expected<std::optional<Finding>> SendAll(Stage& stage, FreshQp& qp, uint64_t size_bytes) {
  const uint64_t writes = SlotsFor(size_bytes);
  for (uint64_t i = 0; i <= writes; ++i) {
    if (const int result = Post(qp, i, size_bytes, i < writes); result != 0) {
      return Fail(CallError(ErrorClass::kRun, "ibv_post_send", Label(i), result));
    }
  }
  for (uint64_t i = 0; i <= writes; ++i) {
    Expected<std::optional<ibv_wc>> next = qp.AwaitSend(stage.CompletionLimit());
    if (!next) return Fail(std::move(next.error()));
    if (!*next) {
      return Missing(i, Label(i), "send completion", stage.CompletionLimit().count());
    }
    // Silence says nothing about immediate data; any other status is an answer.
    if ((*next)->status == IBV_WC_RETRY_EXC_ERR) {
      return Fail(qp.Explain(**next, i < writes ? "RDMA WRITE" : "SEND", size_bytes, i + 1));
    }
    if ((*next)->status != IBV_WC_SUCCESS) return BadStatus(i, Label(i), (*next)->status);
    const ExpectedSend expected{.number = i,
                                .qp_num = qp.qp()->qp_num,
                                .opcode = i < writes ? IBV_WC_RDMA_WRITE : IBV_WC_SEND};
    if (auto mismatch = CheckSend(**next, expected)) return Found(i, Label(i), *mismatch);
  }
  return std::nullopt;
}

Expected<std::optional<Finding>> ReceiveOne(Stage& stage, FreshQp& qp, uint64_t size_bytes) {
  const uint64_t writes = SlotsFor(size_bytes);
  Expected<std::optional<ibv_wc>> next = qp.AwaitReceive(stage.CompletionLimit());
  if (!next) return Fail(std::move(next.error()));
  if (!*next) {
    return Missing(writes, Label(writes), "receive completion", stage.CompletionLimit().count());
  }
  if ((*next)->status != IBV_WC_SUCCESS) return BadStatus(writes, Label(writes), (*next)->status);
  // The first receive of all is taken by the SEND, and none before.
  if (auto mismatch = CheckReceive(**next, {.number = 0, .qp_num = qp.qp()->qp_num})) {
    return Found(writes, Label(writes), *mismatch);
  }
  for (uint64_t i = 0; i < writes; ++i) {
    const auto slot = qp.bytes().subspan(Arrival(i, size_bytes), SlotBytes(size_bytes));
    if (auto mismatch = CheckSlot(slot, size_bytes, i, Direction::kRequest)) {
      return Found(i, Label(i), *mismatch);
    }
  }
  next = qp.AwaitReceive(std::chrono::nanoseconds(0));
  if (!next) return Fail(std::move(next.error()));
  if (!*next) return std::nullopt;
  return Finding{.order = writes,
                 .expected = "one receive completion, that of the SEND",
                 .observed = fmt::format("another, wr_id 0x{:016x}", (*next)->wr_id),
                 .why = "a plain WRITE consumed a receive"};
}

void Report(Stage& stage, std::optional<Finding> first, uint64_t size_bytes, std::string source) {
  const uint64_t writes = SlotsFor(size_bytes);
  CheckRow row{.name = stage.name(),
               .status = "pass",
               .expected =
                   "no receive consumed and nothing completed at the responder, data in its "
                   "place only",
               .source = std::move(source)};
  if (first) {
    row.status = "fail";
    row.expected = first->expected;
    row.observed = first->observed;
    row.why = first->why;
    if (first->missing) stage.GiveUp(first->observed);
  } else {
    row.observed = fmt::format(
        "{} WRITEs of {} bytes: requester SUCCESS, opcode RDMA_WRITE, data in place; the SEND "
        "behind them took the first receive",
        writes, size_bytes);
  }
  stage.Check(std::move(row));
}

Status Run(Stage& stage, uint64_t size_bytes, const std::string& source) {
  Expected<FreshQp*> qp = stage.MakeQp(Options(size_bytes));
  if (!qp) return Fail(std::move(qp.error()));
  for (uint64_t i = 0; i < SlotsFor(size_bytes); ++i) {
    ClearSlot((*qp)->bytes().subspan(Arrival(i, size_bytes), SlotBytes(size_bytes)), size_bytes);
  }
  for (uint64_t i = 0; i < 2 && !stage.requester(); ++i) {
    if (const int result = (*qp)->PostReceive(ReceiveId(i)); result != 0) {
      return Fail(
          CallError(ErrorClass::kRun, "ibv_post_recv", fmt::format("receive {}", i), result));
    }
  }
  if (Status status = (*qp)->Connect(); !status) return status;
  Expected<std::optional<Finding>> own =
      stage.requester() ? SendAll(stage, **qp, size_bytes) : ReceiveOne(stage, **qp, size_bytes);
  if (!own) return Fail(std::move(own.error()));
  Expected<nlohmann::json> peer = stage.Swap(ToJson(*own));
  if (!peer) return Fail(std::move(peer.error()));
  if (stage.requester()) Report(stage, FirstOf(*own, FindingFromJson(*peer)), size_bytes, source);
  return {};
}

}  // namespace

Scenario PlainWrites(std::string name, uint64_t size_bytes, std::string source) {
  const auto run = [size_bytes, source = std::move(source)](Stage& stage) {
    return Run(stage, size_bytes, source);
  };
  return {.name = std::move(name), .requester = run, .responder = run};
}

}  // namespace verbscope
