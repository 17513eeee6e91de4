#include "transports/soft/link/fault_policy.h"

#include "transports/soft/wire/opcode.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft {
namespace {

// PSNs whose transmissions are remembered, behind the newest.
constexpr int32_t kPsnWindow = 1 << 16;

bool IsPositiveAck(const Header& header) {
  return header.opcode == Opcode::kAck && (header.syndrome >> 5) == 0;
}

}  // namespace

bool Matches(FaultClass packets, const Header& header) {
  const OpcodeInfo& info = Info(header.opcode);
  const bool request = info.Is(kOpRequest);
  switch (packets) {
    case FaultClass::kAny:
      return true;
    case FaultClass::kRequest:
      return request;
    case FaultClass::kSend:
      return request && info.Is(kOpSend);
    case FaultClass::kWrite:
      return request && info.Is(kOpWrite);
    case FaultClass::kRead:
      return request && info.Is(kOpRead);
    case FaultClass::kAtomic:
      return request && info.Is(kOpAtomic);
    case FaultClass::kAck:
      return IsPositiveAck(header);
    case FaultClass::kNak:
      return header.opcode == Opcode::kAck && !IsPositiveAck(header);
    case FaultClass::kReadResponse:
      return info.Is(kOpResponse) && info.Is(kOpRead);
    case FaultClass::kAtomicAck:
      return header.opcode == Opcode::kAtomicAck;
  }
  return false;
}

FaultPolicy::FaultPolicy(const FaultOptions& options) : options_(options), random_(options.seed) {
  for (const FaultRule& rule : options_.rules) {
    rules_.push_back({.fault = rule});
    counts_transmissions_ |= rule.transmission != 0;
  }
}

FaultVerdict FaultPolicy::Judge(FaultDirection direction, PathId path, const Header& header,
                                size_t payload_bytes) {
  const uint64_t transmission =
      counts_transmissions_ ? CountTransmission(direction, path, header) : 0;
  FaultVerdict verdict;
  const FaultRule* rule = MatchRules(direction, header, payload_bytes, transmission);
  if (rule != nullptr) verdict.action = rule->action;
  if (direction == FaultDirection::kSend) {
    // Drawn for every packet, so that a rule does not change the accidents of later ones.
    const std::optional<FaultAction> drawn = Draw();
    if (!verdict.action) verdict.action = drawn;
    verdict.delay_ns = static_cast<uint64_t>(options_.delay.count());
  }
  if (verdict.action == FaultAction::kDelay) {
    verdict.delay_ns = static_cast<uint64_t>(rule->delay.count());
  } else if (verdict.action == FaultAction::kStall) {
    verdict.stall_ns = static_cast<uint64_t>(rule->delay.count());
  } else if (!verdict.action && verdict.delay_ns != 0) {
    verdict.action = FaultAction::kDelay;
  }
  if (verdict.action) Count(*verdict.action);
  return verdict;
}

const FaultRule* FaultPolicy::MatchRules(FaultDirection direction, const Header& header,
                                         size_t payload_bytes, uint64_t transmission) {
  const FaultRule* first = nullptr;
  for (Rule& rule : rules_) {
    const FaultRule& fault = rule.fault;
    if (fault.direction != FaultDirection::kBoth && fault.direction != direction) continue;
    if (!Matches(fault.packets, header) || payload_bytes < fault.min_bytes) continue;
    if (fault.transmission != 0 && fault.transmission != transmission) continue;
    ++rule.seen;
    if (fault.nth != 0 && fault.nth != rule.seen) continue;
    if (first != nullptr || (fault.hits != 0 && rule.hits >= fault.hits)) continue;
    ++rule.hits;
    first = &fault;
  }
  return first;
}

uint64_t FaultPolicy::CountTransmission(FaultDirection direction, PathId path,
                                        const Header& header) {
  const bool response = Info(header.opcode).Is(kOpResponse);
  Transmissions& known = transmissions_[{direction, response, path, header.dest_qpn}];
  if (known.counts.empty() || PsnDiff(header.psn, known.newest) > 0) known.newest = header.psn;
  const uint64_t count = ++known.counts[header.psn];
  if (known.counts.size() > 2 * static_cast<size_t>(kPsnWindow)) {
    std::erase_if(known.counts, [&known](const auto& entry) {
      return PsnDiff(known.newest, entry.first) >= kPsnWindow;
    });
  }
  return count;
}

std::optional<FaultAction> FaultPolicy::Draw() {
  // One number for each chance that is not zero, whatever comes of the others.
  const bool drop = Chance(options_.drop);
  const bool corrupt = Chance(options_.corrupt);
  const bool duplicate = Chance(options_.duplicate);
  const bool reorder = Chance(options_.reorder);
  if (drop) return FaultAction::kDrop;
  if (corrupt) return FaultAction::kCorrupt;
  if (duplicate) return FaultAction::kDuplicate;
  if (reorder) return FaultAction::kReorder;
  return std::nullopt;
}

bool FaultPolicy::Chance(double probability) {
  if (probability <= 0) return false;
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

void FaultPolicy::Count(FaultAction action) {
  switch (action) {
    case FaultAction::kDrop:
      ++counts_.dropped;
      break;
    case FaultAction::kDuplicate:
      ++counts_.duplicated;
      break;
    case FaultAction::kReorder:
      ++counts_.reordered;
      break;
    case FaultAction::kDelay:
      ++counts_.delayed;
      break;
    case FaultAction::kCorrupt:
      ++counts_.corrupted;
      break;
    case FaultAction::kStall:
      ++counts_.stalled;
      break;
  }
}

}  // namespace verbscope::soft
