#include "transports/soft/link/fault_receiver.h"

#include <utility>

namespace verbscope::soft {

void FaultReceiver::Receive(PathId path, const Header& header, std::span<const std::byte> payload) {
  if (stall_end_ns_) {
    if (stalled_.size() >= kMaxStalled) return;
    stalled_.push_back(
        {.path = path, .header = header, .payload = {payload.begin(), payload.end()}});
    return;
  }
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
  if (verdict.action == FaultAction::kStall) {
    stall_end_ns_ = policy_.Now(now_ns_) + verdict.stall_ns;
    stalled_.push_front(
        {.path = path, .header = header, .payload = {payload.begin(), payload.end()}});
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
  ReleaseDue();
}

void FaultReceiver::Tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  if (stall_end_ns_ && now_ns >= *stall_end_ns_) ReleaseAfterStall();
  ReleaseDue();
}

void FaultReceiver::ReleaseAfterStall() {
  stall_end_ns_.reset();
  ReleaseDue();  // held since before the stall
  HeldPacket packet = std::move(stalled_.front());
  stalled_.pop_front();
  next_.Receive(packet.path, packet.header, packet.payload);
  held_.Overtaken(packet.path);
  // The others have not been judged: one may begin the next stall, and is then in front again.
  while (!stalled_.empty() && !stall_end_ns_) {
    packet = std::move(stalled_.front());
    stalled_.pop_front();
    Receive(packet.path, packet.header, packet.payload);
  }
}

void FaultReceiver::ReleaseDue() {
  if (stall_end_ns_ || !held_.Due(now_ns_)) return;
  held_.Release(now_ns_, [this](const HeldPacket& held) {
    next_.Receive(held.path, held.header, held.payload);
    held_.Overtaken(held.path);
    return true;
  });
}

}  // namespace verbscope::soft
