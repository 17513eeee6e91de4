#include "core/causes/completion_status.h"

#include <fmt/core.h>

namespace verbscope {
namespace {

using enum DetectedBy;

// "Reliable datagram" statuses: no device in use offers that service, so there is one explanation.
constexpr LikelyCause kReliableDatagram = {
    "the driver or firmware reports a status of the reliable datagram service, which is not in use",
    "note the vendor error and report it with driver and firmware version (verbscope devices)"};

// In the order of ibv_wc_status, so that the status is the index; checked below.
constexpr std::array<CompletionStatusInfo, kCompletionStatuses> kTable = {{
    {IBV_WC_SUCCESS, "SUCCESS", "the request was completed", kNobody, {}},
    {IBV_WC_LOC_LEN_ERR,
     "LOC_LEN_ERR",
     "a message does not fit: longer than the posted receive, or longer than the port allows",
     kThisSide,
     {{{"the peer sent more than the receive here has room for",
        "compare the message size of both sides; verbscope zero-len-recv shows the error on "
        "purpose"},
       {"the path MTU of both sides differs",
        "compare the MTU of both ports (verbscope devices); leave --mtu out"},
       {"the request is above the largest message of the port (2^31 bytes or less)",
        "lower --size"}}}},
    {IBV_WC_LOC_QP_OP_ERR,
     "LOC_QP_OP_ERR",
     "the queue pair here found a request inconsistent with its own set-up",
     kThisSide,
     {{{"the request has more scatter/gather entries or more inline bytes than the queue pair",
        "--inline off"},
       {"the operation is not supported on this device or queue pair type",
        "verbscope check names the operations that work"},
       {"the driver and the firmware disagree about the request format",
        "compare driver and firmware version with a host that works (verbscope devices)"}}}},
    {IBV_WC_LOC_EEC_OP_ERR,
     "LOC_EEC_OP_ERR",
     "the end-to-end context here found a request inconsistent with its set-up",
     kThisSide,
     {{kReliableDatagram}}},
    {IBV_WC_LOC_PROT_ERR,
     "LOC_PROT_ERR",
     "the local buffer of a request is not covered by its memory registration",
     kThisSide,
     {{{"the local key does not cover the buffer, or is of another protection domain",
        "verbscope check shows whether the device answers wrong keys as it should"},
       {"the memory was registered without local write access but is to be written",
        "register with IBV_ACCESS_LOCAL_WRITE"},
       {"the memory was deregistered while the request was in flight",
        "wait for all completions before deregistering"}}}},
    {IBV_WC_WR_FLUSH_ERR,
     "WR_FLUSH_ERR",
     "the request was given up because its queue pair had already failed or was being closed",
     kAftermath,
     {{{"the first error was on the other side, or the peer closed the connection",
        "read the report of the other side"},
       {"an asynchronous event moved the queue pair to the error state",
        "look for device or port events in the report and in the kernel log (dmesg)"},
       {"the queue pair was moved to the error state here",
        "read the first error above this one"}}}},
    {IBV_WC_MW_BIND_ERR,
     "MW_BIND_ERR",
     "a memory window could not be bound to its memory region",
     kThisSide,
     {{{"the region was registered without memory window access",
        "register with IBV_ACCESS_MW_BIND"},
       {"the window lies outside of the region", "compare address and length of both"}}}},
    {IBV_WC_BAD_RESP_ERR,
     "BAD_RESP_ERR",
     "an answer arrived that does not belong to the request it answers",
     kThisSide,
     {{{"the peer's device or its firmware is faulty, or a packet was damaged on the way",
        "verbscope check against another peer; compare firmware versions"},
       {"a packet of an earlier connection with the same queue pair number was taken for an answer",
        "repeat the run; other packet sequence numbers make it unlikely"}}}},
    {IBV_WC_LOC_ACCESS_ERR,
     "LOC_ACCESS_ERR",
     "the device here may not access its own memory as an incoming request wants",
     kThisSide,
     {{{"the peer's request names memory that was registered without remote access",
        "compare the access flags of the registration with the operation"},
       {"the posted receive lies in memory that may not be written",
        "register with IBV_ACCESS_LOCAL_WRITE"}}}},
    {IBV_WC_REM_INV_REQ_ERR,
     "REM_INV_REQ_ERR",
     "the peer's device refused a request as invalid",
     kOtherSide,
     {{{"the message is longer than the receive posted by the peer",
        "compare the message size of both sides; the peer then reports LOC_LEN_ERR"},
       {"more READs or Atomics are outstanding than the peer serves at once",
        "--rd-atomic 1; verbscope devices shows the limit of each side"},
       {"the operation is not enabled on the peer's queue pair, or an Atomic is not aligned to 8",
        "verbscope check names the operations that work on the peer"}}}},
    {IBV_WC_REM_ACCESS_ERR,
     "REM_ACCESS_ERR",
     "the peer's device refused access to the memory that the request names",
     kOtherSide,
     {{{"the remote key is wrong, or of an earlier run",
        "compare the key with the one the peer announced in this run"},
       {"address and length lie outside of the peer's registration",
        "compare --size with the size of the peer's buffer"},
       {"the peer registered without the access that the operation needs",
        "IBV_ACCESS_REMOTE_READ, _WRITE or _ATOMIC, on both the registration and the queue "
        "pair"}}}},
    {IBV_WC_REM_OP_ERR,
     "REM_OP_ERR",
     "the peer's device accepted the request but could not complete it",
     kOtherSide,
     {{{"the peer's receive buffer is not covered by its registration",
        "read the first error of the other side: it is LOC_PROT_ERR then"},
       {"the peer's queue pair failed while it worked on the request",
        "look for device events on the other side (dmesg there)"}}}},
    {IBV_WC_RETRY_EXC_ERR,
     "RETRY_EXC_ERR",
     "the request was sent again and again, and no answer came in time",
     kSilence,
     {{{"the peer died, or closed its queue pair", "read the report of the other side"},
       {"packets are lost on the way: congestion, a full switch buffer, or a filter",
        "compare the loss counters of both sides before and after: rdma statistic"},
       {"large messages only: the network carries less than the path MTU",
        "--mtu 1024, or lower"}}}},
    {IBV_WC_RNR_RETRY_EXC_ERR,
     "RNR_RETRY_EXC_ERR",
     "the peer had no receive posted, each time the request was sent",
     kOtherSide,
     {{{"the peer posts too few receives ahead for this rate", "raise --rx-depth"},
       {"the peer's program is stopped, or starved of CPU",
        "look at the load of the other side; pin it with --peer cpu=N"},
       {"the retries end before the peer can post again",
        "--rnr-retry 7 retries without limit; --rnr-timer sets the wait between two"}}}},
    {IBV_WC_LOC_RDD_VIOL_ERR,
     "LOC_RDD_VIOL_ERR",
     "the queue pair and the end-to-end context here are of different domains",
     kThisSide,
     {{kReliableDatagram}}},
    {IBV_WC_REM_INV_RD_REQ_ERR,
     "REM_INV_RD_REQ_ERR",
     "the peer's device refused a reliable datagram message",
     kOtherSide,
     {{kReliableDatagram}}},
    {IBV_WC_REM_ABORT_ERR,
     "REM_ABORT_ERR",
     "the peer's device aborted the operation",
     kOtherSide,
     {{{"the peer's queue pair was closed or reset during the operation",
        "read the report of the other side"},
       {"the peer's device was reset", "dmesg on the other side"}}}},
    {IBV_WC_INV_EECN_ERR,
     "INV_EECN_ERR",
     "the request names an end-to-end context that does not exist",
     kThisSide,
     {{kReliableDatagram}}},
    {IBV_WC_INV_EEC_STATE_ERR,
     "INV_EEC_STATE_ERR",
     "the end-to-end context is in a state that does not allow the request",
     kThisSide,
     {{kReliableDatagram}}},
    {IBV_WC_FATAL_ERR,
     "FATAL_ERR",
     "the device here failed as a whole",
     kThisSide,
     {{{"the device met an internal error and may be resetting", "dmesg; verbscope devices"},
       {"the device was removed or its driver unloaded", "verbscope devices"}}}},
    {IBV_WC_RESP_TIMEOUT_ERR,
     "RESP_TIMEOUT_ERR",
     "the answer to a request did not come in time",
     kSilence,
     {{{"the peer died, or closed its queue pair", "read the report of the other side"},
       {"packets are lost on the way",
        "compare the loss counters of both sides: rdma statistic"}}}},
    {IBV_WC_GENERAL_ERR,
     "GENERAL_ERR",
     "the device reports an error for which the verbs interface has no name",
     kThisSide,
     {{{"only the vendor error says more",
        "look it up in the vendor's documentation, with driver and firmware version; dmesg"}}}},
    {IBV_WC_TM_ERR,
     "TM_ERR",
     "a tag matching operation failed",
     kThisSide,
     {{{"the tag matching list is full or was changed out of order",
        "verbscope does not use tag matching: report driver and firmware version"}}}},
    {IBV_WC_TM_RNDV_INCOMPLETE,
     "TM_RNDV_INCOMPLETE",
     "a tag matching rendezvous did not end in hardware and is left to the program",
     kThisSide,
     {{{"the device could not fetch the message by itself",
        "verbscope does not use tag matching: report driver and firmware version"}}}},
}};

constexpr bool StatusIsIndex() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<size_t>(kTable[i].status) != i || kTable[i].name.empty()) return false;
  }
  return true;
}
static_assert(StatusIsIndex(), "every ibv_wc_status has a row, in its order");

}  // namespace

std::string_view Text(DetectedBy detected_by) {
  switch (detected_by) {
    case kNobody:
      return "nobody";
    case kThisSide:
      return "the device on this side";
    case kOtherSide:
      return "the peer's device, by a NAK";
    case kSilence:
      return "the device on this side, by silence of the other";
    case kAftermath:
      return "nobody: it follows another fault";
  }
  return "nobody";
}

std::span<const LikelyCause> CompletionStatusInfo::likely_causes() const {
  size_t used = 0;
  while (used < causes.size() && !causes[used].cause.empty()) ++used;
  return std::span(causes).first(used);
}

const CompletionStatusInfo* FindCompletionStatus(ibv_wc_status status) {
  const auto index = static_cast<size_t>(status);  // a negative number becomes a large one
  return index < kTable.size() ? &kTable[index] : nullptr;
}

const CompletionStatusInfo* FindCompletionStatus(std::string_view name) {
  for (const CompletionStatusInfo& row : kTable) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::string NameOf(ibv_wc_status status) {
  const CompletionStatusInfo* info = FindCompletionStatus(status);
  return info != nullptr ? std::string(info->name)
                         : fmt::format("STATUS_{}", static_cast<unsigned>(status));
}

}  // namespace verbscope
