#include "transports/soft/link/fault_sink.h"

#include <span>
#include <utility>

#include "transports/soft/wire/frame.h"

namespace verbscope::soft {
namespace {

// The byte of the BTH with FECN and BECN, which the ICRC does not cover (annex A17.3.3).
constexpr size_t kUncoveredByte = 4;

size_t PayloadBytes(PayloadPieces payload) {
  size_t bytes = 0;
  for (const auto& piece : payload) bytes += piece.size();
  return bytes;
}

}  // namespace

bool FaultSink::Send(PathId path, const Header& header, PayloadPieces payload) {
  if (!CanSend(path)) return false;
  const FaultVerdict verdict =
      policy_.Judge(FaultDirection::kSend, path, header, PayloadBytes(payload));
  if (verdict.action == FaultAction::kDrop) return true;
  const bool corrupt = verdict.action == FaultAction::kCorrupt;
  const bool reorder = verdict.action == FaultAction::kReorder;
  HeldPacket held;
  if (reorder) held.overtakers = 1 + static_cast<uint32_t>(policy_.Random(kMaxOvertakers));
  const uint64_t wait_ns = verdict.delay_ns + (reorder ? kReorderWait_ns : 0);
  const bool stall = verdict.action == FaultAction::kStall;
  int copies = verdict.action == FaultAction::kDuplicate ? 2 : 1;
  if (wait_ns == 0 && !stall) {
    while (copies != 0 && Pass(path, header, payload, corrupt)) --copies;
  }
  // Held: what has to wait, and a duplicate that found no room.
  if (copies != 0) {
    held.path = path;
    held.header = header;
    held.payload = JoinPieces(payload);
    held.corrupt = corrupt;
    // A delay is never shorter than asked for; who only lets others pass need not look at the
    // clock.
    const bool exact = verdict.delay_ns != 0 || stall;
    const uint64_t now_ns = exact ? policy_.Now(now_ns_) : now_ns_;
    held.release_ns = now_ns + wait_ns;
    if (stall) stall_end_ns_ = now_ns + verdict.stall_ns;
    if (stall && wait_ns == 0) {
      stalled_ = std::move(held);
    } else {
      for (; copies != 0; --copies) held_.Hold(held);
    }
  }
  ReleaseDue();
  return true;
}

void FaultSink::Tick(uint64_t now_ns) {
  now_ns_ = now_ns;
  if (stall_end_ns_ && now_ns >= *stall_end_ns_) ReleaseAfterStall();
  ReleaseDue();
}

void FaultSink::ReleaseAfterStall() {
  const std::optional<uint64_t> end_ns = std::exchange(stall_end_ns_, std::nullopt);
  ReleaseDue();  // held since before the stall
  if (stalled_) {
    const std::span<const std::byte> pieces[] = {stalled_->payload};
    if (!Pass(stalled_->path, stalled_->header, pieces, /*corrupt=*/false)) {
      stall_end_ns_ = end_ns;  // the others wait for it
      return;
    }
  }
  stalled_.reset();
}

void FaultSink::ReleaseDue() {
  if (stall_end_ns_ || !held_.Due(now_ns_)) return;
  held_.Release(now_ns_, [this](const HeldPacket& held) {
    const std::span<const std::byte> pieces[] = {held.payload};
    return Pass(held.path, held.header, pieces, held.corrupt);
  });
}

bool FaultSink::Pass(PathId path, const Header& header, PayloadPieces payload, bool corrupt) {
  const bool sent =
      corrupt ? PassCorrupted(path, header, payload) : next_.Send(path, header, payload);
  if (sent) held_.Overtaken(path);
  return sent;
}

bool FaultSink::PassCorrupted(PathId path, const Header& header, PayloadPieces payload) {
  // The flip is drawn once for each packet that goes: no room, no draw.
  if (!next_.CanSend(path)) return false;
  const Flow* flow = flows_.SendFlow(path);
  if (flow == nullptr) return true;  // a path that is gone: lost either way
  BuildTransport(*flow, header, payload, bytes_);
  auto bit = static_cast<size_t>(policy_.Random((bytes_.size() - 1) * 8));
  if (bit / 8 >= kUncoveredByte) bit += 8;
  bytes_[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  return raw_next_.SendRaw(path, bytes_);
}

}  // namespace verbscope::soft
