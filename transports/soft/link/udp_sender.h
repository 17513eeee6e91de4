// The sending half of a UDP link: collects packets and hands them to the kernel in as few calls as
// possible.
//
// Packets of one flow and one destination QP that follow each other and are of one size, but for
// the last, which may be shorter, leave as one send (UDP GSO): the kernel's cost per packet is then
// a twentieth. The kernel numbers the IPv4 IDs of such a burst 0, 1, 2 …, and the ICRC covers the
// ID; so a packet's ICRC depends on its place in its burst, and is computed when that is decided:
// when the packet is taken.
//
// A burst never mixes destination QPs: processes that share an address get whole bursts, each by
// the QPN of its first packet.
//
// Threads: with the device's lock held. Nothing allocates or waits.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_SENDER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_SENDER_H_

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/link/udp_counts.h"
#include "transports/soft/link/udp_socket.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"
#include "transports/soft/wire/icrc_cache.h"

namespace verbscope::soft {

inline constexpr size_t kMaxUdpPayload = 4096;  // the largest path MTU
// BTH … ICRC of the largest packet.
inline constexpr size_t kMaxUdpPacket = kMaxHeaderBytes + kMaxUdpPayload + 3 + kIcrcBytes;
inline constexpr size_t kMaxBurst = 64;  // packets, in the kernels that have the lowest limit
inline constexpr size_t kMaxBurstBytes = 65000;  // 64 KiB with the headers

// Where packets go, and what they look like there.
struct UdpFlow {
  Flow wanted;                         // as it was asked for
  Flow flow;                           // with the source port that is really used
  IcrcCache icrcs;                     // of flow
  SocketAddress to;                    // with the flow label
  std::shared_ptr<SendSocket> socket;  // shared by flows that differ in their destination only
  bool ipv4 = false;
  bool bursts = false;
  bool label_refused = false;
  uint32_t users = 0;
};

class UdpSender {
 public:
  UdpSender(Counters& counters, UdpCounts& counts);

  // Takes a packet. False: no room, and none could be made.
  bool Send(UdpFlow& flow, const Header& header, PayloadPieces pieces);
  // The same for BTH … ICRC as bytes, at most kMaxUdpPacket.
  bool SendRaw(UdpFlow& flow, std::span<const std::byte> packet);
  bool HasRoom() const { return tail_ < kSlots; }

  // Hands over what was taken. What the kernel has no room for stays, and what it refuses is
  // counted and lost.
  void Flush();
  // Whether the last Flush left packets, and the socket that had no room for them (-1: none).
  bool blocked() const { return blocked_; }
  int blocked_socket() const;

  // `flow` is going away: what is left of it is lost.
  void Forget(const UdpFlow& flow);

 private:
  static constexpr size_t kSlots = 128;
  static constexpr size_t kSlotBytes = 4160;
  static_assert(kSlotBytes >= kMaxUdpPacket && kSlotBytes % 64 == 0);

  // Packets in consecutive slots that leave together.
  struct Run {
    UdpFlow* flow = nullptr;  // null: forgotten
    uint32_t qpn = 0;
    uint32_t first = 0;  // slot
    uint32_t count = 0;
    uint32_t size = 0;    // of all packets but the last
    uint32_t bytes = 0;   // of all together
    bool closed = false;  // nothing may be added
    bool single = false;  // the packets leave one by one: the kernel would not send the burst
  };

  // Header, payload and pad of a packet, from `to` on. Returns how many bytes, or 0: too many.
  static size_t Write(const Header& header, PayloadPieces pieces, std::byte* to);
  // Puts the packet in slot tail_ into a run. Returns its place there.
  size_t AddToRun(UdpFlow& flow, uint32_t qpn, size_t bytes, bool may_join);
  std::byte* Slot(size_t index) { return slots_.data() + index * kSlotBytes; }

  // Sends what stands at the front. False: blocked.
  bool SendFront();
  bool SendOnePacket(Run& run);
  bool SendMessages();
  size_t FillMessages();
  void FillMessage(size_t index, Run& run, size_t first, size_t count);
  // One message of the front run has gone, or is lost.
  void ConsumeFront();
  // True: go on with the rest. False: no room now.
  bool HandleError(int error);
  void MakeSingle(Run& run);

  Counters& counters_;
  UdpCounts& counts_;
  std::vector<std::byte> slots_;
  std::array<uint32_t, kSlots> sizes_ = {};
  size_t tail_ = 0;  // slots in use; those of runs that have gone are free when all have
  std::array<Run, kSlots> runs_;
  size_t run_head_ = 0;
  size_t run_tail_ = 0;
  bool blocked_ = false;

  std::array<mmsghdr, kSlots> messages_ = {};
  std::array<iovec, kSlots> pieces_ = {};
  struct alignas(cmsghdr) Control {
    char bytes[CMSG_SPACE(sizeof(uint16_t))];
  };
  std::array<Control, kSlots> controls_ = {};
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_SENDER_H_
