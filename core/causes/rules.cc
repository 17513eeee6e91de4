#include "core/causes/rules.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <string>

#include "core/causes/counter_meanings.h"
#include "core/causes/rc_timers.h"

namespace verbscope {
namespace {

using enum CounterSign;

bool HasStatus(const Evidence& evidence, std::string_view status) {
  return evidence.error && evidence.error->status == status;
}

// By how much the counters of such a sign rose on a side; nothing when it has none of them.
std::optional<int64_t> Rise(const SideEvidence& side, CounterSign sign) {
  std::optional<int64_t> sum;
  for (const auto& [name, change] : side.counters) {
    const CounterMeaning* row = FindCounter(name);
    if (row != nullptr && row->sign == sign) sum = sum.value_or(0) + change;
  }
  return sum;
}

bool Rose(const SideEvidence& side, CounterSign sign) { return Rise(side, sign).value_or(0) > 0; }

// "out_of_sequence +812 of the responder", of every such counter that rose.
std::string RiseText(const SideEvidence& side, CounterSign sign) {
  std::string text;
  for (const auto& [name, change] : side.counters) {
    const CounterMeaning* row = FindCounter(name);
    if (row == nullptr || row->sign != sign || change <= 0) continue;
    text += fmt::format("{}{} +{}", text.empty() ? "" : ", ", name, change);
  }
  return text.empty() ? "" : fmt::format("{} of the {}", text, side.role);
}

std::string Both(const std::string& a, const std::string& b) {
  return a.empty() || b.empty() ? a + b : a + "; " + b;
}

std::string RiseOfBoth(const Evidence& evidence, CounterSign sign) {
  return Both(RiseText(evidence.requester, sign), RiseText(evidence.responder, sign));
}

bool RoseOnAny(const Evidence& evidence, CounterSign sign) {
  return Rose(evidence.requester, sign) || Rose(evidence.responder, sign);
}

std::string SideWithMore(const Evidence& evidence, CounterSign sign) {
  if (evidence.one_device) return "both";
  const int64_t here = Rise(evidence.requester, sign).value_or(0);
  const int64_t there = Rise(evidence.responder, sign).value_or(0);
  return here > 0 && there > 0 ? "both" : here > 0 ? "requester" : "responder";
}

bool IsLinkLocal(const GidRecord& gid) { return gid.value.starts_with("fe80"); }

std::optional<CauseRow> GidsApart(const Evidence& evidence) {
  const bool silent =
      HasStatus(evidence, "RETRY_EXC_ERR") || HasStatus(evidence, "RESP_TIMEOUT_ERR");
  const bool setup =
      evidence.error && evidence.error->error_class == ErrorClass::kSetup &&
      (evidence.error->errno_value == ETIMEDOUT || evidence.error->errno_value == EINVAL);
  if ((!silent && !setup) || !evidence.requester.gid || !evidence.responder.gid) return {};
  const GidRecord& a = *evidence.requester.gid;
  const GidRecord& b = *evidence.responder.gid;
  const bool types = a.type != b.type;
  if (!types && IsLinkLocal(a) == IsLinkLocal(b)) return {};
  return CauseRow{
      .cause = types ? "the GIDs of both sides are of different types: neither understands the "
                       "other's packets"
                     : "one GID is link-local, the other is routable: they do not reach each other",
      .evidence = fmt::format("requester: index {} {} {}; responder: index {} {} {}", a.index,
                              a.value, a.type, b.index, b.value, b.type),
      .next_step =
          "leave --gid-index out, or choose entries of the same type and network "
          "(verbscope devices)"};
}

// One direction of nothing but silence.
std::optional<CauseRow> NothingFrom(const SideEvidence& from, const SideEvidence& to) {
  if (!Rose(from, kSent) || Rise(to, kReceived) != 0) return {};
  return CauseRow{
      .cause = fmt::format("no packet of the {} reached the {}: UDP port 4791 is filtered on the "
                           "way, or the GID leads to another host",
                           from.role, to.role),
      .evidence = fmt::format("{}; the {} received none", RiseText(from, kSent), to.role),
      .next_step =
          "nft list ruleset on both hosts, and allow UDP port 4791; ping one GID's "
          "address from the other's netdev",
      .side = to.role};
}

std::optional<CauseRow> NothingArrives(const Evidence& evidence) {
  if (!HasStatus(evidence, "RETRY_EXC_ERR") || evidence.one_device) return {};
  std::optional<CauseRow> row = NothingFrom(evidence.requester, evidence.responder);
  return row ? row : NothingFrom(evidence.responder, evidence.requester);
}

std::optional<CauseRow> StarvedToDeath(const Evidence& evidence) {
  if (!HasStatus(evidence, "RNR_RETRY_EXC_ERR")) return {};
  const std::string seen = Both(RiseOfBoth(evidence, kStarved), RiseOfBoth(evidence, kPeerStarved));
  if (seen.empty()) return {};
  return CauseRow{.cause = "the receiver posts too few receives ahead for this rate, or is stopped",
                  .evidence = seen,
                  .next_step = "raise --rx-depth; look at the CPU load of the receiving side",
                  .side = SideWithMore(evidence, kStarved)};
}

// Not an end, but a delay: each RNR NAK costs its timer, and without limit it looks like a hang.
std::optional<CauseRow> StarvedAtTimes(const Evidence& evidence) {
  if (evidence.provokes || HasStatus(evidence, "RNR_RETRY_EXC_ERR")) return {};
  if (evidence.error && evidence.error->error_class != ErrorClass::kDeadline) return {};
  const std::string seen = Both(RiseOfBoth(evidence, kStarved), RiseOfBoth(evidence, kPeerStarved));
  if (seen.empty()) return {};
  const bool forever = evidence.plan && evidence.plan->rnr_retry >= kRnrRetryForever;
  const bool starved = RoseOnAny(evidence, kStarved);
  return CauseRow{
      .cause = fmt::format(
          "messages found no receive posted and were sent again after the RNR "
          "timer: latency and rate include these waits{}",
          forever ? "; with rnr_retry 7 a receiver that stays so looks like a hang" : ""),
      .evidence = seen,
      .next_step = "raise --rx-depth, or lower the rate",
      .side = starved ? SideWithMore(evidence, kStarved) : "both"};
}

// From one side to the other: NAKs received by the one, gaps seen by the other.
std::optional<CauseRow> LossFrom(const SideEvidence& from, const SideEvidence& to,
                                 const Evidence& evidence) {
  if (evidence.provokes || evidence.one_device) return {};
  // Of errors only silence is of loss.
  if (evidence.error && !HasStatus(evidence, "RETRY_EXC_ERR")) return {};
  const std::string seen = Both(RiseText(from, kLossOut), RiseText(to, kLossIn));
  if (seen.empty()) return {};
  return CauseRow{.cause = fmt::format("packets from the {} to the {} are lost or reordered; what "
                                       "follows a gap is sent again",
                                       from.role, to.role),
                  .evidence = seen,
                  .next_step =
                      "look at drops of switches and ports on that way, at PFC and ECN, "
                      "and at the cable",
                  .side = to.role};
}

std::optional<CauseRow> LossToResponder(const Evidence& evidence) {
  return LossFrom(evidence.requester, evidence.responder, evidence);
}

std::optional<CauseRow> LossToRequester(const Evidence& evidence) {
  return LossFrom(evidence.responder, evidence.requester, evidence);
}

// Retransmissions of a direction that nobody can tell: timeouts, or one device for both sides.
std::optional<CauseRow> LossSomewhere(const Evidence& evidence) {
  if (evidence.provokes || evidence.error) return {};
  const bool directed = RoseOnAny(evidence, kLossIn) || RoseOnAny(evidence, kLossOut);
  if (directed && !evidence.one_device) return {};
  // The counters of the one device stand on each side.
  SideEvidence both = evidence.requester;
  if (evidence.one_device) both.role = "device of both sides";
  std::string seen = RiseText(both, kLoss);
  if (evidence.one_device) {
    seen = Both(Both(RiseText(both, kLossIn), RiseText(both, kLossOut)), seen);
  } else {
    seen = RiseOfBoth(evidence, kLoss);
  }
  if (seen.empty()) return {};
  return CauseRow{.cause =
                      "packets or their answers were lost, or came after the timeout, and were "
                      "sent again",
                  .evidence = seen,
                  .next_step =
                      "look at drops of ports and switches; compare --timeout with the "
                      "longest latency",
                  .side = SideWithMore(evidence, kLoss)};
}

std::optional<CauseRow> Damaged(const Evidence& evidence) {
  if (evidence.provokes || !RoseOnAny(evidence, kCorrupt)) return {};
  return CauseRow{.cause =
                      "packets are damaged on the way: a cable, a module, or a box that "
                      "changes them",
                  .evidence = RiseOfBoth(evidence, kCorrupt),
                  .next_step =
                      "change the cable or the path; compare the error counters of each "
                      "port on the way",
                  .side = SideWithMore(evidence, kCorrupt)};
}

std::optional<CauseRow> LinkWentDown(const Evidence& evidence) {
  if (evidence.provokes || !RoseOnAny(evidence, kLink)) return {};
  return CauseRow{.cause = "the link went down, or changed, during the run",
                  .evidence = RiseOfBoth(evidence, kLink),
                  .next_step = "look at the kernel log (dmesg) of that side, at cable and module",
                  .side = SideWithMore(evidence, kLink)};
}

std::optional<CauseRow> Congested(const Evidence& evidence) {
  if (evidence.provokes || evidence.error || !RoseOnAny(evidence, kCongested)) return {};
  return CauseRow{.cause = "the network or a receiver is congested: senders were slowed down",
                  .evidence = RiseOfBoth(evidence, kCongested),
                  .next_step =
                      "repeat without other traffic; if it stays, compare the ECN "
                      "thresholds of the switches",
                  .side = SideWithMore(evidence, kCongested)};
}

std::optional<CauseRow> DroppedHere(const Evidence& evidence) {
  if (evidence.provokes || !RoseOnAny(evidence, kDropped)) return {};
  return CauseRow{.cause = "a port or network device dropped packets, of RDMA or of others",
                  .evidence = RiseOfBoth(evidence, kDropped),
                  .next_step =
                      "ethtool -S of the netdev names the reason; compare ring sizes and "
                      "the load of the host",
                  .side = SideWithMore(evidence, kDropped)};
}

// Retries that take longer than the command may: a dead path then looks like a hang.
std::optional<CauseRow> RetriesOutlastTheDeadline(const Evidence& evidence) {
  if (!evidence.error || evidence.error->error_class != ErrorClass::kDeadline || !evidence.plan) {
    return {};
  }
  const Plan& plan = *evidence.plan;
  const std::optional<int64_t> give_up = AckGiveUpNs(plan.timeout_code, plan.retry_count);
  const int64_t deadline_ns = EffectiveDeadlineNs(plan);
  if (give_up && *give_up < deadline_ns) return {};
  return CauseRow{
      .cause =
          "the retries of the queue pair take longer than the deadline: a path without answers "
          "cannot be told from a slow one",
      .evidence =
          fmt::format("timeout code {} and retry {}: {}, deadline {:.3g} s", plan.timeout_code,
                      plan.retry_count,
                      give_up ? fmt::format("{:.3g} s", static_cast<double>(*give_up) * 1e-9)
                              : std::string("without limit"),
                      static_cast<double>(deadline_ns) * 1e-9),
      .next_step = "leave --timeout and --retry out"};
}

// A tail that the host alone makes.
std::optional<CauseRow> HostNoise(const Evidence& evidence) {
  if (evidence.error || !evidence.p99_9_ns || !evidence.p50_ns) return {};
  constexpr int64_t kLongTail = 10;  // times the median
  if (*evidence.p99_9_ns < kLongTail * *evidence.p50_ns) return {};
  for (const SideEvidence* side : {&evidence.requester, &evidence.responder}) {
    if (!side->jitter_floor || side->jitter_floor->max_gap_ns < *evidence.p99_9_ns / 2) continue;
    return CauseRow{
        .cause =
            "the tail of the latency is the host's: a thread that never rests is kept from its "
            "CPU as long",
        .evidence = fmt::format("longest gap of the {} {:.3g} us, p99.9 {:.3g} us", side->role,
                                static_cast<double>(side->jitter_floor->max_gap_ns) * 1e-3,
                                static_cast<double>(*evidence.p99_9_ns) * 1e-3),
        .next_step =
            "pin to a quiet CPU with --cpu; look for other work, interrupts and "
            "hypervisors",
        .side = side->role};
  }
  return {};
}

std::optional<CauseRow> PowerSaving(const Evidence& evidence) {
  if (evidence.error || !evidence.p99_9_ns || !evidence.p50_ns) return {};
  constexpr int64_t kLongTail = 5;  // times the median
  if (*evidence.p99_9_ns < kLongTail * *evidence.p50_ns) return {};
  for (const SideEvidence* side : {&evidence.requester, &evidence.responder}) {
    if (side->governor != "powersave" && side->governor != "conservative") continue;
    return CauseRow{.cause =
                        "the CPU saves power: its frequency follows the load, and the tail of "
                        "the latency includes waking up",
                    .evidence = fmt::format("governor {} of the {}", side->governor, side->role),
                    .next_step = "cpupower frequency-set -g performance, then compare",
                    .side = side->role};
  }
  return {};
}

constexpr auto kRules = std::to_array<CauseRule>({
    {"gids-apart", Confidence::kDecided, GidsApart},
    {"nothing-arrives", Confidence::kDecided, NothingArrives},
    {"starved-to-death", Confidence::kDecided, StarvedToDeath},
    {"retries-outlast-the-deadline", Confidence::kDecided, RetriesOutlastTheDeadline},
    {"damaged", Confidence::kDecided, Damaged},
    {"loss-to-responder", Confidence::kDecided, LossToResponder},
    {"loss-to-requester", Confidence::kDecided, LossToRequester},
    {"starved-at-times", Confidence::kDecided, StarvedAtTimes},
    {"loss-somewhere", Confidence::kHint, LossSomewhere},
    {"link-went-down", Confidence::kHint, LinkWentDown},
    {"congested", Confidence::kHint, Congested},
    {"dropped-here", Confidence::kHint, DroppedHere},
    {"host-noise", Confidence::kHint, HostNoise},
    {"power-saving", Confidence::kHint, PowerSaving},
});

}  // namespace

std::span<const CauseRule> CauseRules() { return kRules; }

}  // namespace verbscope
