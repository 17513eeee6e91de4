#include "transports/soft/link/fault_receiver.h"

#include <utility>

namespace verbscope::soft {

void FaultReceiver::Receive(PathId path, const Header& header, std::span<const std::byte> payload) {
  // Nothing can be refused here; more than can be held goes on as it is.
  FaultVerdict verdict;
  if (!held_.Full()) {
    verdict = policy_.Judge(FaultDirection::kReceive, path, header, payload.size());
  }
  if (verdict.action == FaultAction::kDrop) return;
  if (verdict.action == FaultAction::kCorrupt) {
    ++counters_.icrc_errors;
    return;
  }
  if (verdict.action == FaultAction::kReorder || verdict.action == FaultAction::kDelay) {
    HeldPacket held{.path = path, .header = header, .payload = {payload.begin(), payload.end()}};
    held.release_ns = policy_.Now(now_ns_) + verdict.delay_ns;
    if (verdict.action == FaultAction::kReorder) {
      held.release_ns = now_ns_ + kReorderWait_ns;
      held.overtakers = 1 + static_cast<uint32_t>(policy_.Random(kMaxOvertakers));
    }
    held_.Hold(std::move(held));
    return;
  }
  next_.Receive(path, header, payload);
  held_.Overtaken(path);
  if (verdict.action == FaultAction::kDuplicate) next_.Receive(path, header, payload);
  if (held_.Due(now_ns_)) ReleaseDue();
}

void FaultReceiver::Tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  if (held_.Due(now_ns_)) ReleaseDue();
}

void FaultReceiver::ReleaseDue() {
  held_.Release(now_ns_, [this](const HeldPacket& held) {
    next_.Receive(held.path, held.header, held.payload);
    held_.Overtaken(held.path);
    return true;
  });
}

}  // namespace verbscope::soft
