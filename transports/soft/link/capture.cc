#include "transports/soft/link/capture.h"

#include <algorithm>

#include "transports/soft/wire/frame.h"

namespace verbscope::soft {
namespace {

// The frame around bytes that need not be a packet: that of a packet of the same length, whose
// transport bytes are then replaced. The UDP checksum of IPv6 stays that of the other packet, as
// wrong as it is for bytes that were damaged on a wire.
void BuildRawFrame(const Flow& flow, std::span<const std::byte> transport,
                   std::vector<std::byte>& frame) {
  const size_t least = kBthBytes + kIcrcBytes;
  const size_t payload = transport.size() > least ? transport.size() - least : 0;
  const std::span<const std::byte> pieces[] = {transport.first(payload)};
  BuildFrame(flow, Header{}, pieces, frame);
  if (transport.size() < least) return;
  std::copy(transport.begin(), transport.end(),
            frame.end() - static_cast<ptrdiff_t>(transport.size()));
}

}  // namespace

bool CaptureSink::Send(PathId path, const Header& header, PayloadPieces payload) {
  if (!next_.Send(path, header, payload)) return false;
  const Flow* flow = file_.Broken() ? nullptr : flows_.SendFlow(path);
  if (flow != nullptr) {
    BuildFrame(*flow, header, payload, frame_);
    file_.Write(frame_);
  }
  return true;
}

bool CaptureSink::SendRaw(PathId path, std::span<const std::byte> packet) {
  if (!raw_next_.SendRaw(path, packet)) return false;
  const Flow* flow = file_.Broken() ? nullptr : flows_.SendFlow(path);
  if (flow != nullptr) {
    BuildRawFrame(*flow, packet, frame_);
    file_.Write(frame_);
  }
  return true;
}

// Recorded before the engine sees it, so that an answer stands after its question.
void CaptureReceiver::Receive(PathId path, const Header& header,
                              std::span<const std::byte> payload) {
  const Flow* flow = file_.Broken() ? nullptr : flows_.ReceiveFlow(path);
  if (flow != nullptr) {
    const std::span<const std::byte> pieces[] = {payload};
    BuildFrame(*flow, header, pieces, frame_);
    file_.Write(frame_);
  }
  next_.Receive(path, header, payload);
}

}  // namespace verbscope::soft
