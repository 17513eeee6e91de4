// The UDP link: RoCEv2 packets between hosts, through plain UDP sockets. The peer may be another
// soft device, Linux rxe or an adapter. No privilege is needed.
//
// One UdpLink belongs to one opened device. It receives on port 4791 of each of its local
// addresses. A path is a pair of a local address and a peer's; QPs share it, each with a source
// port of its own (Flow::source_port, or another if that is taken: SendFlow tells).
//
//   UdpOptions options;
//   options.locals.push_back({.address = address, .socket = {}});   // or a bound socket
//   auto link = UdpLink::Create(std::move(options), lock, counters);
//   blob = (*link)->LocalBlob();                       // travels to the peer beside the QPN
//   auto path = (*link)->Connect(peer_blob, flow, deadline, peer_qpn);
//   { DeviceLockHolder hold(lock);
//     (*link)->Send(*path, header, pieces);  (*link)->Flush();
//     (*link)->Poll(engine, 16); }
//   (*link)->Disconnect(*path, peer_qpn);              // when the QP goes
//
// How a busy poller finds packets. There is no memory to look at, so Pending says whether a look at
// the sockets is due. It is, as long as a path is connected; but after a look that found nothing
// Pending says no once. So "does anything wait?" right after an empty Poll is answered no, and a
// thread that spins looks with every second poll, the others costing a load. A look is one system
// call (udp_receiver.h). Who wants to know whether the link is idle asks what Poll returned, or
// Kept; who must not miss what came before (an arm) calls Poll.
//
// The helper thread, when nobody polls:
//
//   for (;;) {
//     { hold the lock; Poll, timers, Flush; if (!link.PrepareSleep()) continue; }
//     poll(link.wait_fd(), …);
//     { hold the lock; link.Awake(); }
//   }
//
// The sockets make wait_fd readable only between the two calls, so that packets wake nobody while
// the application polls. Watch and Unwatch are the same for who else wants a signal.
//
// Sending never waits: what the kernel has no room for stays in a batch and goes with the next
// Flush or Poll; CanSend is false while the batch is full.
//
// Threads. "Lock held": the caller holds the device's lock. "Takes the lock": the caller must not.
//   lock held:      Send, SendRaw, CanSend, Poll, Flush, Kept, PrepareSleep, Awake, Watch, Unwatch,
//                   SendFlow, ReceiveFlow, proof, Report, counts
//   takes the lock: Connect, Disconnect
//   no lock:        Pending, LocalBlob, wait_fd, Notices, receive_buffer_bytes, Drops
// Inside PacketReceiver::Receive only Send, SendRaw, CanSend, Flush and the const functions may be
// called.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_LINK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_LINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/device_lock.h"
#include "transports/soft/link/link.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/link/path_flows.h"
#include "transports/soft/link/udp_blob.h"
#include "transports/soft/link/udp_counts.h"
#include "transports/soft/link/udp_gso.h"
#include "transports/soft/link/udp_paths.h"
#include "transports/soft/link/udp_receiver.h"
#include "transports/soft/link/udp_sender.h"
#include "transports/soft/wire/frame.h"

namespace verbscope::soft {

struct UdpOptions {
  // One to kMaxUdpLocals, all different. An empty socket: the link binds port 4791 itself.
  std::vector<BoundSocket> locals;
  UdpGso gso = UdpGso::kAuto;
  // Asked of the system for each socket. A receive buffer has to hold what peers may have in
  // flight; a packet takes about twice its size of it.
  size_t buffer_bytes = size_t{4} << 20;
};

// What became of a path, to tell the user.
struct UdpPathReport {
  std::string netdev;  // packets leave by
  uint32_t interface_mtu_bytes = 0;
  uint16_t source_port = 0;
  bool bursts = false;              // packets leave in bursts
  bool flow_label_refused = false;  // packets go without the flow label that was asked for
  // The weakest ICRC proof of the packets received so far; nullopt: none yet.
  std::optional<IcrcProof> proof;
};

class UdpLink final : public Link, public PathFlows {
 public:
  // `lock` and `counters` must outlive the link. Of the counters it changes send_err, icrc_errors
  // and malformed_pkts, with the lock held. A setup Error if an address is not local or its port
  // 4791 is taken.
  static Expected<std::unique_ptr<UdpLink>> Create(UdpOptions options, DeviceLock& lock,
                                                   Counters& counters);
  UdpLink(const UdpLink&) = delete;
  UdpLink& operator=(const UdpLink&) = delete;
  ~UdpLink() override;

  std::vector<std::byte> LocalBlob() const;

  // The path from flow.source, an address of this link, to flow.destination; one more user of it if
  // there is one already. `peer_blob`: what the peer's LocalBlob said; empty for peers that are no
  // soft devices. `peer_qpn`: packets to this QPN have the hop limit, traffic class, flow label and
  // source port of `flow`; kAnyQpn: those of the path's first Connect. A setup Error if there is no
  // route, no free port or descriptor. Never waits; `deadline` is for links that do.
  Expected<PathId> Connect(std::span<const std::byte> peer_blob, const Flow& flow,
                           Deadline deadline, uint32_t peer_qpn = kAnyQpn);
  // One user less: of the same QPN. After the last one, packets of that peer are dropped. What was
  // sent before still goes, unless the kernel has no room for it.
  void Disconnect(PathId path, uint32_t peer_qpn = kAnyQpn);

  // Link.
  bool Send(PathId path, const Header& header, PayloadPieces payload) override;
  bool CanSend(PathId path) const override;
  bool SendRaw(PathId path, std::span<const std::byte> packet) override;
  size_t Poll(PacketReceiver& receiver, size_t budget) override;
  bool Pending() const override { return receiver_.Pending(); }
  void Flush() override;

  // PathFlows. SendFlow is that of the path's first Connect, which SendRaw goes by; the second form
  // is the one of packets to a QPN. ReceiveFlow has the source port of the newest packet.
  const Flow* SendFlow(PathId path) const override;
  const Flow* SendFlow(PathId path, uint32_t peer_qpn) const;
  const Flow* ReceiveFlow(PathId path) const override;

  // Packets have been taken from a socket and not been delivered.
  bool Kept() const { return receiver_.Kept(); }

  // Readable when packets wait, or there is room to send again; see above. Owned by the link.
  int wait_fd() const { return epoll_.get(); }
  // False: packets are kept, do not sleep (and nothing is asked).
  bool PrepareSleep();
  // After every true PrepareSleep, woken or not.
  void Awake() { Unwatch(); }
  // Makes wait_fd tell of packets until Unwatch. Calls count.
  void Watch();
  void Unwatch();

  // The weakest proof so far that packets of a path were intact; nullopt: none has come.
  std::optional<IcrcProof> proof(PathId path) const;
  UdpPathReport Report(PathId path, uint32_t peer_qpn = kAnyQpn) const;
  UdpCounts counts() const;  // with the system's drops: a system call for each address

  // What the user should know of how the sockets turned out: whole sentences, or none.
  const std::vector<std::string>& Notices() const { return notices_; }
  // Of the smallest receive buffer, as the kernel accounts for it.
  size_t receive_buffer_bytes() const { return receive_buffer_bytes_; }
  // Packets that the kernel dropped: a receive buffer was full, or a checksum wrong. System calls.
  uint64_t Drops() const;

 private:
  UdpLink(UdpOptions options, DeviceLock& lock, Counters& counters);
  Status Open();
  Status OpenLocal(BoundSocket& local);

  // udp_link_connect.cc
  Expected<size_t> LocalOf(const Flow& flow) const;
  std::shared_ptr<SendSocket> SharedSocket(const Flow& flow);
  // A user more of what is there already; kNoPath: something has to be made.
  PathId Join(const UdpPair& pair, const Flow& flow, uint32_t peer_qpn);
  Expected<std::unique_ptr<UdpFlow>> MakeFlow(const LocalAddress& local, const Flow& flow,
                                              std::shared_ptr<SendSocket> socket);
  PathId Install(const UdpPair& pair, bool own_device, const UdpRoute& route,
                 std::unique_ptr<UdpFlow> flow, uint32_t peer_qpn);
  void Use(UdpPath& path, UdpFlow& flow, uint32_t peer_qpn);
  void RemovePath(PathId id);
  void SetWatched(int socket, bool on);

  DeviceLock& lock_;
  Counters& counters_;
  UdpOptions options_;
  FileDescriptor epoll_;
  std::vector<std::string> notices_;
  std::vector<uint64_t> drops_before_;  // of each local: a socket may have had another owner
  size_t receive_buffer_bytes_ = 0;

  UdpCounts counts_;
  UdpPaths paths_;
  UdpSender sender_;
  UdpReceiver receiver_;
  std::vector<size_t> paths_of_local_;
  std::vector<std::weak_ptr<SendSocket>> send_sockets_;
  uint32_t watchers_ = 0;
  int watched_sender_ = -1;  // a send socket that waits for room, in the epoll set
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_LINK_H_
