#include "transports/soft/options/hooks.h"

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

void CompletionFaults::Apply(ibv_wc& completion) {
  const uint64_t count = completions_.fetch_add(1, std::memory_order_relaxed) + 1;
  bool garbage = false;
  for (const CompletionFault& fault : faults_) {
    if (!Hits(fault.nth, count)) continue;
    if (fault.status) {
      completion.status = *fault.status;
      completion.vendor_err = fault.vendor_err;
    }
    garbage = garbage || fault.garbage;
  }
  // Last: the status decides what is undefined.
  if (garbage) FillUndefinedFields(completion);
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
