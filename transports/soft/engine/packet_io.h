// The two ends of a packet path, as the engine sees it: where packets go, and where they come from.
// Links implement PacketSink and feed a PacketReceiver; faults and capture are decorators of both.
//
// Threads: called with the device's lock held; nothing here blocks or allocates on the plain path.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_ENGINE_PACKET_IO_H_
#define VERBSCOPE_TRANSPORTS_SOFT_ENGINE_PACKET_IO_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/soft/wire/header.h"

namespace verbscope::soft {

// A path is one peer device as the link knows it: a pair of rings, later a pair of IP addresses. A
// QP accepts packets only from the path it is connected to.
using PathId = uint32_t;
inline constexpr PathId kNoPath = 0xffffffff;

// What a packet carries, in pieces as its SGEs have it. Pad bytes are added by the sink
// (Header::pad says how many).
using PayloadPieces = std::span<const std::span<const std::byte>>;

class PacketSink {
 public:
  virtual ~PacketSink() = default;
  // Takes the packet at once (the pieces may change after the return). False: no room now, nothing
  // happened, ask again after CanSend says so. A path that is gone takes packets and loses them:
  // retries and timeouts decide what that means.
  virtual bool Send(PathId path, const Header& header, PayloadPieces payload) = 0;
  // Whether at least one packet of any size can be sent.
  virtual bool CanSend(PathId path) const = 0;
};

class PacketReceiver {
 public:
  virtual ~PacketReceiver() = default;
  // One decoded packet. `payload` is without pad and valid during the call only.
  virtual void Receive(PathId path, const Header& header, std::span<const std::byte> payload) = 0;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_ENGINE_PACKET_IO_H_
