// The receiving half of a UDP link: looks at the sockets, keeps what came until it is delivered.
//
// One call of the kernel is a look. It takes one datagram while packets are few, several when the
// socket was seen to hold more: the call for one is the faster of the two. Sockets are looked at in
// turn, only those with a connected path.
//
// The kernel merges the packets of a burst (UDP_GRO) while there are many: a socket that may get
// merged packets costs 190 ns more for each that is none (measured, Linux 6.18), and without
// merging a burst costs a call for every few packets.
//
// Threads: with the device's lock held, but for Pending. Nothing allocates or waits.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_RECEIVER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_RECEIVER_H_

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/udp_counts.h"
#include "transports/soft/link/udp_datagram.h"
#include "transports/soft/link/udp_paths.h"

namespace verbscope::soft {

class UdpReceiver {
 public:
  UdpReceiver(UdpPaths& paths, Counters& counters, UdpCounts& counts);

  // The socket of local address `local` is looked at, or no longer.
  void Add(size_t local, int socket);
  void Remove(size_t local);
  struct Watched {
    size_t local;
    int socket;
    bool can_merge = true;  // until it was refused
    bool merging = false;
    uint32_t singles = 0;  // looks in a row that found one packet
  };
  const std::vector<Watched>& watched() const { return sockets_; }

  // Delivers what is kept, else looks once and delivers that; at most `budget` packets. Returns how
  // many, those that were dropped included. Fewer than `budget` does not mean that nothing waits.
  size_t Poll(PacketReceiver& receiver, size_t budget);
  // Packets that have been taken from a socket and not been delivered.
  bool Kept() const { return current_ < filled_; }
  // Whether a Poll is due: packets are kept, or it is time for a look. Right after an empty look it
  // says no, once. No lock.
  bool Pending() const;

 private:
  static constexpr size_t kBuffers = 8;
  static constexpr size_t kBufferBytes = 65536;  // a merged datagram
  struct alignas(cmsghdr) Control {
    char bytes[CMSG_SPACE(sizeof(int)) * 2 + 64];
  };

  // Looks in a row that found one packet, until merging ends.
  static constexpr uint32_t kFewPackets = 2048;

  bool Look();
  // Turns merging on or off by what a look has found.
  void AdaptMerging(Watched& socket, size_t found);
  int Receive(int socket, size_t buffers);
  void Prepare(size_t buffer);
  // Reads the control messages and the source of what is in a buffer.
  void Open(size_t buffer);
  size_t DeliverCurrent(PacketReceiver& receiver, size_t budget);
  enum class Due : uint8_t {
    kNever,       // no socket is looked at
    kAfterOneNo,  // the last look found nothing
    kYes,
  };
  void SetDue(Due due) const { due_.store(due, std::memory_order_relaxed); }

  UdpPaths& paths_;
  Counters& counters_;
  UdpCounts& counts_;
  std::vector<Watched> sockets_;
  size_t turn_ = 0;
  size_t next_look_ = 1;     // datagrams that the next look takes at most
  bool found_last_ = false;  // the last look found some
  mutable std::atomic<Due> due_;

  std::vector<std::byte> buffers_;
  std::array<mmsghdr, kBuffers> messages_ = {};
  std::array<iovec, kBuffers> pieces_ = {};
  std::array<sockaddr_storage, kBuffers> sources_ = {};
  std::array<Control, kBuffers> controls_ = {};

  size_t filled_ = 0;   // buffers
  size_t current_ = 0;  // the one that is being delivered
  bool opened_ = false;
  // Of the current buffer.
  Datagram datagram_;
  UdpPair pair_;
  uint16_t source_port_ = 0;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_RECEIVER_H_
