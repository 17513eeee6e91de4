#include "core/causes/completion_failure.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>
#include <vector>

#include "core/causes/completion_status.h"
#include "core/causes/rc_timers.h"

namespace verbscope {
namespace {

// Cause and check as they enter the Error; like LikelyCause, but owned.
struct Finding {
  std::string cause;
  std::string check;
};

// "0.64 ms", "470 ms", "1.5 s": up to three digits, for texts.
std::string TimeText(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1'000'000) return fmt::format("{:.3g} us", value / 1e3);
  if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", value / 1e6);
  return fmt::format("{:.4g} s", value / 1e9);
}

// "SEND of 64 bytes, message 17" or what is known of it.
std::string RequestText(const CompletionFailure& failure) {
  std::string text = failure.op.empty() ? "request" : failure.op;
  if (failure.size_bytes) text += fmt::format(" of {} bytes", *failure.size_bytes);
  if (failure.message_number > 0) text += fmt::format(", message {},", failure.message_number);
  text += fmt::format(" on QP 0x{:06x}", failure.qp_num);
  if (failure.remote_qp_num > 0) {
    text += fmt::format(" (peer's QP 0x{:06x})", failure.remote_qp_num);
  }
  return text;
}

std::string TimersText(const CompletionFailure& failure) {
  const std::optional<int64_t> give_up = AckGiveUpNs(failure.timeout_code, failure.retry_count);
  if (!give_up) return fmt::format("retry {} with timeout code 0", failure.retry_count);
  return fmt::format("timeout code {} and retry {}: {} without an answer, up to {} on some devices",
                     failure.timeout_code, failure.retry_count, TimeText(*give_up),
                     TimeText(*give_up * kAckTimeoutSlack));
}

std::string RnrText(const CompletionFailure& failure) {
  const int64_t timer = RnrTimerNs(failure.rnr_timer_code);
  if (failure.rnr_retry >= kRnrRetryForever) {
    // A device that gives up here breaks the rule; it is the more important to say so.
    return fmt::format(
        "rnr_retry 7 is without limit, yet the device gave up; RNR timer code {} ({})",
        failure.rnr_timer_code, TimeText(timer));
  }
  return fmt::format("{} retries with RNR timer code {} ({}), at least {} in all",
                     failure.rnr_retry, failure.rnr_timer_code, TimeText(timer),
                     TimeText(timer * failure.rnr_retry));
}

// Bytes of payload that pass with any path MTU: above it a too small MTU on the way is a suspect.
constexpr uint64_t kSmallestMtu = 256;

// Of the largest packet of such a message.
uint64_t PacketPayload(uint64_t size_bytes, const CompletionFailure& failure) {
  return failure.path_mtu_bytes > 0 ? std::min<uint64_t>(size_bytes, failure.path_mtu_bytes)
                                    : size_bytes;
}

bool HasLargePackets(const CompletionFailure& failure) {
  return PacketPayload(failure.size_bytes.value_or(0), failure) > kSmallestMtu;
}

// The first message of its size was lost, and with it the first packets of their size: switches
// drop what is larger than their MTU without a word.
bool LargerPacketsAreLost(const CompletionFailure& failure) {
  if (!failure.passed_bytes || !HasLargePackets(failure)) return false;
  if (failure.completions_before > 0 && failure.message_number != 1) return false;
  return PacketPayload(*failure.size_bytes, failure) >
         PacketPayload(*failure.passed_bytes, failure);
}

std::vector<Finding> SilentAboveASize(const CompletionFailure& failure) {
  const uint64_t passed = *failure.passed_bytes;
  // The largest path MTU whose packets are known to pass.
  const uint64_t mtu = std::max(kSmallestMtu, std::bit_floor(PacketPayload(passed, failure)));
  return {
      {fmt::format("messages up to {} bytes passed, {} bytes did not: packets with {} bytes of "
                   "payload are lost on the path, which carries less than the path MTU{}",
                   passed, *failure.size_bytes, PacketPayload(*failure.size_bytes, failure),
                   failure.path_mtu_bytes > 0 ? fmt::format(" {}", failure.path_mtu_bytes) : ""),
       fmt::format("check the MTU of every switch and interface on the path, or run with --mtu "
                   "{}",
                   mtu)},
      {"the peer died, or closed its queue pair, just then", "read the report of the other side"}};
}

Finding PathMtuTooLarge(const CompletionFailure& failure) {
  return {fmt::format("the network carries less than the path MTU{}: small messages pass, large "
                      "ones vanish",
                      failure.path_mtu_bytes > 0 ? fmt::format(" {}", failure.path_mtu_bytes) : ""),
          fmt::format("--mtu 256; if that works, raise the MTU of the switches on the path, and "
                      "--size 1:{} names the limit",
                      std::bit_ceil(*failure.size_bytes))};
}

// Nothing ever came back: the path itself is in doubt, before any thought of loss.
std::vector<Finding> SilentFromTheStart(const CompletionFailure& failure) {
  std::vector<Finding> findings;
  if (failure.link_layer == LinkLayer::kInfiniBand) {
    findings.push_back({"no packet ever came back: the fabric has no path between the two LIDs",
                        "ibtracert or ibping between both; look at the subnet manager"});
  } else {
    const bool ethernet = failure.link_layer == LinkLayer::kEthernet;
    findings.push_back(
        {fmt::format("no packet ever came back: {}UDP port 4791 is filtered on the way, by a host "
                     "firewall or a switch",
                     ethernet ? "" : "on Ethernet, "),
         "nft list ruleset on both hosts, and allow UDP port 4791"});
    findings.push_back(
        {failure.gid_pair.empty()
             ? std::string("the two GIDs cannot reach each other")
             : fmt::format("the two GIDs cannot reach each other ({})", failure.gid_pair),
         "ping one from the other on their netdevs; choose another pair by --gid-index"});
  }
  if (HasLargePackets(failure)) findings.push_back(PathMtuTooLarge(failure));
  findings.push_back({"the peer's queue pair was gone before the first message",
                      "read the report of the other side"});
  return findings;
}

std::vector<Finding> SilentAfterSuccess(const CompletionFailure& failure) {
  const bool earlier = failure.completions_before == 0 && failure.passed_bytes;
  std::vector<Finding> findings = {
      {fmt::format("the path worked for {}: then the peer died, or closed its queue pair",
                   earlier ? fmt::format("messages up to {} bytes", *failure.passed_bytes)
                           : fmt::format("{} completions", failure.completions_before)),
       "read the report of the other side"},
      {"packets are lost on the way: congestion, a full switch buffer, or a filter",
       "compare the loss counters of both sides before and after: rdma statistic"}};
  // Unless packets as large as that have passed already.
  if (HasLargePackets(failure) && !failure.passed_bytes) {
    findings.push_back(PathMtuTooLarge(failure));
  }
  return findings;
}

// A receive that fails by length has another first suspect than a request that does.
std::vector<Finding> LengthOfReceive(const CompletionFailure& failure) {
  return {{failure.size_bytes ? fmt::format("the peer sent more than the {} bytes posted here",
                                            *failure.size_bytes)
                              : std::string("the peer sent more than was posted here"),
           "compare the message size of both sides; the peer reports REM_INV_REQ_ERR"},
          {"the path MTU of both sides differs",
           "compare the MTU of both ports (verbscope devices); leave --mtu out"}};
}

std::vector<Finding> FindingsFor(const CompletionFailure& failure,
                                 const CompletionStatusInfo* info) {
  if (failure.status == IBV_WC_RETRY_EXC_ERR) {
    if (LargerPacketsAreLost(failure)) return SilentAboveASize(failure);
    return failure.completions_before == 0 && !failure.passed_bytes ? SilentFromTheStart(failure)
                                                                    : SilentAfterSuccess(failure);
  }
  if (failure.status == IBV_WC_LOC_LEN_ERR && failure.op == "receive") {
    return LengthOfReceive(failure);
  }
  std::vector<Finding> findings;
  if (info == nullptr) {
    findings.push_back({"the device or driver is newer than this program",
                        "look the number up in ibv_wc_status of the installed libibverbs"});
    return findings;
  }
  for (const LikelyCause& row : info->likely_causes()) {
    findings.push_back({std::string(row.cause), std::string(row.check)});
  }
  return findings;
}

// "a; or b; or c" of one member of all findings.
std::string Join(const std::vector<Finding>& findings, std::string Finding::*member) {
  std::string text;
  for (const Finding& finding : findings) text += (text.empty() ? "" : "; or ") + finding.*member;
  return text;
}

}  // namespace

Error ExplainCompletion(const CompletionFailure& failure) {
  const CompletionStatusInfo* info = FindCompletionStatus(failure.status);
  Error error;
  error.error_class = failure.status == IBV_WC_SUCCESS ? ErrorClass::kInternal : ErrorClass::kRun;
  error.side = Side::kLocal;
  error.status = NameOf(failure.status);

  std::string details =
      fmt::format("vendor error 0x{:x}, wr_id {}", failure.vendor_err, failure.wr_id);
  if (!failure.qp_state.empty()) details += ", QP state " + failure.qp_state;
  if (failure.flushed > 0) details += fmt::format(", {} more flushed", failure.flushed);
  if (failure.status == IBV_WC_RETRY_EXC_ERR) details += ", " + TimersText(failure);
  if (failure.status == IBV_WC_RNR_RETRY_EXC_ERR) details += ", " + RnrText(failure);

  if (failure.status == IBV_WC_WR_FLUSH_ERR) {
    error.message = fmt::format("{} ended with WR_FLUSH_ERR, and nothing but flushes was seen ({})",
                                RequestText(failure), details);
  } else {
    error.message =
        fmt::format("{} ended with {}: {}; noticed by {} ({})", RequestText(failure), error.status,
                    info != nullptr ? info->meaning : "a status this program does not know",
                    info != nullptr ? Text(info->detected_by) : "an unknown side", details);
  }
  const std::vector<Finding> findings = FindingsFor(failure, info);
  error.cause = Join(findings, &Finding::cause);
  error.next_step = Join(findings, &Finding::check);
  return error;
}

}  // namespace verbscope
