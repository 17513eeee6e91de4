#include "transports/soft/options/hooks.h"

#include <arpa/inet.h>

#include <utility>

namespace verbscope::soft {
namespace {

constexpr uint32_t kGarbage = 0xdeadbeef;

bool Hits(uint64_t nth, uint64_t count) { return nth == 0 || nth == count; }

// Whether a success of this opcode carries a length: receives, READ and atomics do.
bool HasLength(ibv_wc_opcode opcode) {
  return (opcode & IBV_WC_RECV) != 0 || opcode == IBV_WC_RDMA_READ || opcode == IBV_WC_COMP_SWAP ||
         opcode == IBV_WC_FETCH_ADD;
}

// All that a rule asks for but garbage.
void Change(const CompletionFault& fault, ibv_wc& completion) {
  if (fault.status) {
    completion.status = *fault.status;
    completion.vendor_err = fault.vendor_err;
  }
  if (fault.opcode) completion.opcode = *fault.opcode;
  completion.wr_id ^= fault.wr_id_xor;
  completion.qp_num ^= fault.qp_num_xor;
  completion.byte_len =
      fault.byte_len.value_or(completion.byte_len) + static_cast<uint32_t>(fault.byte_len_add);
  if ((completion.wc_flags & IBV_WC_WITH_IMM) == 0) return;
  completion.imm_data ^= ::htonl(fault.imm_xor);
  if (fault.imm_swap) completion.imm_data = __builtin_bswap32(completion.imm_data);
  if (fault.drop_imm_flag) completion.wc_flags &= ~static_cast<unsigned>(IBV_WC_WITH_IMM);
}

}  // namespace

ControlFaults::ControlFaults(std::vector<ControlFault> faults) : active_(!faults.empty()) {
  for (ControlFault& fault : faults) rules_.push_back({.fault = std::move(fault)});
}

std::optional<int> ControlFaults::Next(std::string_view call) {
  if (!active_) return std::nullopt;
  const std::lock_guard lock(mutex_);
  std::optional<int> code;
  for (Rule& rule : rules_) {
    if (!rule.fault.call.empty() && rule.fault.call != call) continue;
    ++rule.calls;
    if (Hits(rule.fault.nth, rule.calls) && !code) code = rule.fault.errno_value;
  }
  return code;
}

CompletionFate CompletionFaults::Apply(CompletionKind kind, ibv_wc& completion) {
  const uint64_t count = completions_.fetch_add(1, std::memory_order_relaxed) + 1;
  const uint64_t count_of_kind =
      of_kind_[static_cast<size_t>(kind)].fetch_add(1, std::memory_order_relaxed) + 1;
  bool garbage = false;
  bool drop = false;
  bool hold_behind = false;
  for (const CompletionFault& fault : faults_) {
    if (fault.kind && *fault.kind != kind) continue;
    if (!Hits(fault.nth, fault.kind ? count_of_kind : count)) continue;
    Change(fault, completion);
    garbage = garbage || fault.garbage;
    drop = drop || fault.drop;
    hold_behind = hold_behind || fault.hold_behind;
  }
  // Last: the status decides what is undefined.
  if (garbage) FillUndefinedFields(completion);
  if (drop) return CompletionFate::kDrop;
  return hold_behind ? CompletionFate::kHoldBehind : CompletionFate::kDeliver;
}

DataVerdict DataFaults::NextMessage() {
  const uint64_t count = messages_.fetch_add(1, std::memory_order_relaxed) + 1;
  const auto hits = [count](std::optional<uint64_t> nth) { return nth && Hits(*nth, count); };
  return {.flip_bit = hits(fault_.flip_bit),
          .skip_last = hits(fault_.skip_last),
          .write_past = hits(fault_.write_past)};
}

void FillUndefinedFields(ibv_wc& completion) {
  const bool success = completion.status == IBV_WC_SUCCESS;
  const bool has_length = success && HasLength(completion.opcode);
  const unsigned flags = success ? completion.wc_flags : 0;
  // imm_data and invalidated_rkey share their place.
  if ((flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV)) == 0) completion.imm_data = kGarbage;
  if (!has_length) completion.byte_len = kGarbage;
  if (success) {
    completion.vendor_err = kGarbage;
  } else {
    completion.opcode = static_cast<ibv_wc_opcode>(kGarbage & 0xff);
    completion.wc_flags = kGarbage & 0xffff;
  }
  // These are for datagram QPs, of which this device has none.
  completion.src_qp = kGarbage;
  completion.pkey_index = kGarbage & 0xffff;
  completion.slid = kGarbage & 0xffff;
  completion.sl = kGarbage & 0xff;
  completion.dlid_path_bits = kGarbage & 0xff;
}

}  // namespace verbscope::soft
