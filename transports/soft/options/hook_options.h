// Failures and oddities that the soft device is asked to show its user: plain data, filled from a
// config file. The defaults do nothing. hooks.h has the state that counts calls and completions.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_HOOK_OPTIONS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_HOOK_OPTIONS_H_

#include <infiniband/verbs.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/soft/engine/hook_verdicts.h"

namespace verbscope::soft {

// The calls that can be made to fail, as ControlFault names them: the verb without "ibv_".
inline constexpr std::array<std::string_view, 24> kControlCalls = {
    "open_device",  "close_device",
    "query_device", "query_port",
    "query_gid",    "query_pkey",
    "alloc_pd",     "dealloc_pd",
    "reg_mr",       "dereg_mr",
    "create_cq",    "resize_cq",
    "destroy_cq",   "create_comp_channel",
    "create_qp",    "modify_qp",
    "query_qp",     "destroy_qp",
    "create_srq",   "modify_srq",
    "destroy_srq",  "destroy_comp_channel",
    "get_cq_event", "get_async_event",
};

// Control calls fail instead of being done.
struct ControlFault {
  std::string call = {};  // one of kControlCalls; empty: any call
  uint64_t nth = 1;       // the n-th call that matches, from 1; 0: each
  int errno_value = 0;    // positive

  friend bool operator==(const ControlFault&, const ControlFault&) = default;
};

// Completions are changed on their way to the program, or do not come when they should. The QP and
// the wire know nothing of it.
struct CompletionFault {
  uint64_t nth = 1;  // the n-th completion of the device that is of the kind, from 1; 0: each
  std::optional<CompletionKind> kind = {};   // absent: any
  std::optional<ibv_wc_status> status = {};  // absent: the status stays
  uint32_t vendor_err = 0;                   // goes with `status`
  bool garbage = false;                      // rubbish in the fields that the verbs leave undefined

  // Lies in the fields that the verbs define.
  std::optional<ibv_wc_opcode> opcode = {};
  uint64_t wr_id_xor = 0;
  uint32_t qp_num_xor = 0;
  std::optional<uint32_t> byte_len = {};
  int64_t byte_len_add = 0;  // modulo 2^32
  // Of completions that have an immediate.
  uint32_t imm_xor = 0;        // to the number in host order
  bool imm_swap = false;       // its bytes in reverse
  bool drop_imm_flag = false;  // IBV_WC_WITH_IMM is missing

  bool drop = false;         // never comes
  bool hold_behind = false;  // comes behind the next one of its CQ

  friend bool operator==(const CompletionFault&, const CompletionFault&) = default;
};

// When completion events are raised.
struct EventTiming {
  std::chrono::nanoseconds late = {};  // each event comes so much after its completion; 0: at once
  bool coalesce = false;               // one event stands for all completions since the arm
  // A completion comes exactly between the last poll and the arm: the device holds one back until
  // its CQ is armed, and then adds it without an event. Only a poll after the arm finds it.
  bool between_poll_and_arm = false;

  bool Active() const { return late.count() > 0 || coalesce || between_poll_and_arm; }
  friend bool operator==(const EventTiming&, const EventTiming&) = default;
};

// What is wrong with the data that messages leave in the memory of this device's program. The
// numbers count messages with data that come to their end: SENDs and WRITEs from peers, READs of
// this device. From 1; 0: each; absent: none.
struct DataFault {
  std::optional<uint64_t> flip_bit = {};    // one bit of the last packet
  std::optional<uint64_t> skip_last = {};   // the last packet is not stored
  std::optional<uint64_t> write_past = {};  // the byte behind the message, if of the same region
  // Peers reach so much of each memory region only; behind it the key does as if it was wrong.
  std::optional<uint64_t> max_access_bytes = {};

  friend bool operator==(const DataFault&, const DataFault&) = default;
};

struct HookOptions {
  std::vector<ControlFault> control;
  std::vector<CompletionFault> completions;
  DataFault data;
  EventTiming events;

  friend bool operator==(const HookOptions&, const HookOptions&) = default;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_HOOK_OPTIONS_H_
