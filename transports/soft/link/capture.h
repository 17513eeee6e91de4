// Capture of the packets of a device: decorators of what it sends and of what it receives.
//
//   engine → FaultSink → CaptureSink → link → CaptureReceiver → FaultReceiver → engine
//
// so that the file has what went and what came, accidents included. Packets carry the addresses of
// their path; a packet of a path without addresses is not recorded.
//
// Threads: with the device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_CAPTURE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_CAPTURE_H_

#include <cstddef>
#include <span>
#include <vector>

#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/capture_file.h"
#include "transports/soft/link/link.h"
#include "transports/soft/link/path_flows.h"

namespace verbscope::soft {

class CaptureSink final : public PacketSink, public RawPacketSink {
 public:
  // All must outlive the sink.
  CaptureSink(CaptureFile& file, PacketSink& next, RawPacketSink& raw_next, const PathFlows& flows)
      : file_(file), next_(next), raw_next_(raw_next), flows_(flows) {}
  CaptureSink(const CaptureSink&) = delete;
  CaptureSink& operator=(const CaptureSink&) = delete;

  bool Send(PathId path, const Header& header, PayloadPieces payload) override;
  bool CanSend(PathId path) const override { return next_.CanSend(path); }
  bool SendRaw(PathId path, std::span<const std::byte> packet) override;

 private:
  CaptureFile& file_;
  PacketSink& next_;
  RawPacketSink& raw_next_;
  const PathFlows& flows_;
  std::vector<std::byte> frame_;
};

class CaptureReceiver final : public PacketReceiver {
 public:
  // All must outlive the receiver.
  CaptureReceiver(CaptureFile& file, PacketReceiver& next, const PathFlows& flows)
      : file_(file), next_(next), flows_(flows) {}
  CaptureReceiver(const CaptureReceiver&) = delete;
  CaptureReceiver& operator=(const CaptureReceiver&) = delete;

  void Receive(PathId path, const Header& header, std::span<const std::byte> payload) override;

 private:
  CaptureFile& file_;
  PacketReceiver& next_;
  const PathFlows& flows_;
  std::vector<std::byte> frame_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_CAPTURE_H_
