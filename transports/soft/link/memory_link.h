// The memory link: packets between devices of one user on one host, through shared-memory rings.
//
// One MemoryLink belongs to one opened device. It has a random nonce, listens on an abstract Unix
// socket named after it, and tells peers where it is by LocalBlob. Connect(blob of the peer) makes
// a ring that this side writes and hands it over that socket; packets can be sent at once, the peer
// finds them when it serves its sockets. A path is one peer: the ring to it and the ring from it
// have the same PathId, whichever came first. A link may connect to itself.
//
//   auto link = MemoryLink::Create(lock, counters);
//   blob = (*link)->LocalBlob();                        // travels to the peer beside the QPN
//   auto path = (*link)->Connect(peer_blob, flow, deadline);
//   { DeviceLockHolder hold(lock);
//     (*link)->Send(*path, header, pieces);  (*link)->Flush();
//     (*link)->Poll(engine, 16); }
//   (*link)->Disconnect(*path);                         // when the QP goes
//
// The helper thread of the device:
//
//   for (;;) {
//     link.Serve();                                     // no lock held: takes it itself
//     { hold the lock; Poll, timers, Flush; if (!link.PrepareSleep()) continue; }
//     poll(link.wait_fd(), …);
//     { hold the lock; link.Awake(); }
//   }
//
// While the bell bit is set, a sender pays a system call to ring it: a device whose application
// polls should let its helper sleep without PrepareSleep, or by timer only.
//
// Threads. "Lock held": the caller holds the device's lock. "Takes the lock": the caller must not
// hold it; it is taken for microseconds, some tens when a peer comes or goes, never while waiting.
//   lock held:      Send, SendRaw, CanSend, Poll, Flush, Arm, Disarm, PrepareSleep, Awake, Alive,
//                   SendFlow, ReceiveFlow, wakes
//   takes the lock: Connect, Disconnect, AddChannel, RemoveChannel, Serve (one thread at a time)
//   no lock:        Pending, LocalBlob, Reach, wait_fd
// Inside PacketReceiver::Receive only Send, SendRaw, CanSend, Flush, Arm, Disarm and the const
// functions may be called.
//
// Memory ordering of packets and of waking: ring_layout.h.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_MEMORY_LINK_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_MEMORY_LINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/engine/counters.h"
#include "transports/soft/engine/packet_io.h"
#include "transports/soft/link/device_lock.h"
#include "transports/soft/link/link.h"
#include "transports/soft/link/link_state.h"
#include "transports/soft/link/path_flows.h"
#include "transports/soft/link/rendezvous_messages.h"
#include "transports/soft/link/ring_memory.h"
#include "transports/soft/link/unix_socket.h"
#include "transports/soft/link/wake.h"
#include "transports/soft/wire/frame.h"

namespace verbscope::soft {

inline constexpr size_t kMaxPaths = 256;
inline constexpr size_t kMaxBlobBytes = 128;

class MemoryLink final : public Link, public PathFlows {
 public:
  // `lock` and `counters` must outlive the link. Of the counters it changes send_err, icrc_errors
  // and malformed_pkts, with the lock held.
  static Expected<std::unique_ptr<MemoryLink>> Create(DeviceLock& lock, Counters& counters);
  // All paths end; peers see that this side is gone. No other call may be running.
  ~MemoryLink() override;
  MemoryLink(const MemoryLink&) = delete;
  MemoryLink& operator=(const MemoryLink&) = delete;

  // What a peer needs for Connect; less than kMaxBlobBytes, good until the link is destroyed.
  std::vector<std::byte> LocalBlob() const;

  // Whether the link that made `peer_blob` is one of this user, which its nonce proves; else the
  // Status says whose it is. An Error if it is on another host, says that it is here and does not
  // answer, or is of another version. No lock; waits as Connect.
  Expected<Status> Reach(std::span<const std::byte> peer_blob, Deadline deadline) const;
  // The path to the link that made `peer_blob`; one more user of it if there is one already.
  // `flow`: the addresses of packets to the peer; those of the first Connect count. Fails with the
  // setup class for a peer of another user, host or version, a peer that is gone, too many paths,
  // or system limits. Waits only if the peer is flooded with connections.
  Expected<PathId> Connect(std::span<const std::byte> peer_blob, const Flow& flow,
                           Deadline deadline);
  // One user less. After the last one nothing can be sent on the path, and the peer is told.
  // Packets sent before still reach it.
  void Disconnect(PathId path);
  // Whether the peer of a connected path is still there, as far as Serve has seen.
  bool Alive(PathId path) const;

  // Link.
  bool Send(PathId path, const Header& header, PayloadPieces payload) override;
  bool CanSend(PathId path) const override;
  bool SendRaw(PathId path, std::span<const std::byte> packet) override;
  size_t Poll(PacketReceiver& receiver, size_t budget) override;
  bool Pending() const override;
  void Flush() override;

  // PathFlows.
  const Flow* SendFlow(PathId path) const override;
  const Flow* ReceiveFlow(PathId path) const override;

  // Readable when Serve has something to do. Owned by the link.
  int wait_fd() const;
  // Accepts peers, maps their rings, notices those that have gone, takes the channels they offer.
  // Bounded, never waits. Look at Pending() afterwards: a new ring may hold packets already.
  void Serve();

  // Asks all peers to ring the bell with their next packet. False: packets wait, do not sleep (and
  // nothing is asked). The bell makes wait_fd readable; the peer that rings withdraws its own bit.
  bool PrepareSleep();
  // Withdraws what PrepareSleep asked. After every true PrepareSleep, woken or not.
  void Awake();

  // A completion channel, by its eventfd, which stays the caller's and open until RemoveChannel.
  // Peers learn of it at once and write to it themselves when an arm is hit.
  uint32_t AddChannel(int event_fd);
  void RemoveChannel(uint32_t channel_id);

  // Asks the peer of `path` to add 1 to the channel's eventfd, once, when it sends a packet that
  // can complete on QP `qpn` of this device: for kReceive the end of a SEND or a request with
  // immediate data (`solicited_only`: with the solicited bit), for kSend a response that ends
  // something. One arm per path, side and QPN modulo kArmSlots (ring_layout.h); arming again
  // replaces it.
  //
  // An event is a hint: a packet may turn out to complete nothing, and QPNs may collide. Whoever is
  // woken polls, and arms again if nothing came. After Arm, look at Pending() (Arm has fenced): a
  // packet sent before the arm raises no event.
  void Arm(PathId path, uint32_t qpn, ArmSide side, uint32_t channel_id, bool solicited_only);
  // Withdraws an arm; the peer may have hit it already.
  void Disarm(PathId path, uint32_t qpn, ArmSide side);

  const WakeCounts& wakes() const;

 private:
  MemoryLink(DeviceLock& lock, Counters& counters, Mapping window);
  Status Open();

  PathEntry* Find(PathId path) const { return path < kMaxPaths ? paths_[path].get() : nullptr; }
  PathId FindNonce(const Nonce& nonce) const;  // kNoPath: none
  // The path of a peer, made if there is none; kNoPath: too many.
  PathId FindOrAdd(const Nonce& nonce);
  void RemoveIfUnused(PathId path);
  void MarkDirty(PathId path, PathEntry& entry) {
    if (entry.dirty) return;
    entry.dirty = true;
    dirty_[dirty_count_++] = path;
  }

  // memory_link_connect.cc
  Status CheckUser(const FileDescriptor& socket) const;
  // One user more of a live path; kNoPath: there is none.
  PathId Join(const Nonce& nonce);
  Expected<PathId> Install(const Nonce& nonce, const Flow& flow, RingMemory ring,
                           FileDescriptor socket);
  void DropTx(PathEntry& entry, Retired& retired);

  // memory_link_serve.cc
  void Accept(Retired& retired);
  void HandleConnection(ConnectionId id, Retired& retired);
  void HandleRecord(ConnectionId id, Connection& connection, Record& record, Retired& retired);
  bool AttachRing(Connection& connection, Record& record);
  void HandleChannel(Connection& connection, Record& record);
  void DetachRing(RxRing& ring, Retired& retired);
  void ReapClosedRings(Retired& retired);
  ConnectionId AddConnection(Connection connection);
  void RemoveConnection(ConnectionId id);
  void OfferChannel(int socket, uint32_t channel, int event_fd);

  DeviceLock& lock_;
  Counters& counters_;
  LinkAddress address_;
  const size_t arena_bytes_;
  FileDescriptor listener_;
  FileDescriptor spare_;  // given up for a moment to refuse a peer when there are no descriptors
  FileDescriptor epoll_;

  // The data path.
  std::array<std::unique_ptr<PathEntry>, kMaxPaths> paths_;
  std::array<PathId, kMaxPaths> dirty_ = {};
  size_t dirty_count_ = 0;
  RxWindow window_;
  std::vector<std::unique_ptr<RxRing>> rings_;  // goes before window_
  size_t turn_ = 0;                             // the ring that is polled first
  size_t closed_rings_ = 0;                     // of rings_, those being drained
  bool asleep_ = false;
  WakeCounts wakes_;

  struct Channel {
    uint32_t number;
    int event_fd;
  };
  std::vector<Channel> channels_;
  uint32_t next_channel_ = 0;
  std::unordered_map<ConnectionId, Connection> connections_;
  ConnectionId next_connection_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_MEMORY_LINK_H_
