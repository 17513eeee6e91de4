// A link carries packets between devices. It is a PacketSink that also delivers what arrived, and
// it knows who sleeps at the other end.
//
// Threads. Send, Poll, Flush and the arming functions are called with the device's lock held.
// Pending needs no lock. Connect, and Serve for what happens on the link's sockets, take the lock
// themselves only for short updates (see the implementation).
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "transports/soft/engine/packet_io.h"

namespace verbscope::soft {

// A packet as bytes, ICRC included. Only faults need it: bytes that no encoder would make.
class RawPacketSink {
 public:
  virtual ~RawPacketSink() = default;
  // `packet` is BTH … ICRC. The receiver checks the ICRC. False: no room, as PacketSink::Send.
  virtual bool SendRaw(PathId path, std::span<const std::byte> packet) = 0;
};

class Link : public PacketSink, public RawPacketSink {
 public:
  // Delivers waiting packets, at most `budget`. Returns how many.
  virtual size_t Poll(PacketReceiver& receiver, size_t budget) = 0;
  // Whether a packet waits. A few loads; any thread, no lock.
  virtual bool Pending() const = 0;
  // After a batch of Send: makes sure that a receiver that sleeps is woken. Costs one fence.
  virtual void Flush() = 0;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_LINK_H_
