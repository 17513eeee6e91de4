// Paths to peers: how they are made and ended. The system calls that take long are made without the
// device's lock; the tables change with it.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/base/error.h"
#include "transports/soft/link/epoll_ids.h"
#include "transports/soft/link/memory_link.h"
#include "transports/soft/link/unix_socket.h"

namespace verbscope::soft {

PathId MemoryLink::FindNonce(const Nonce& nonce) const {
  for (PathId path = 0; path < kMaxPaths; ++path) {
    if (paths_[path] != nullptr && paths_[path]->nonce == nonce) return path;
  }
  return kNoPath;
}

PathId MemoryLink::FindOrAdd(const Nonce& nonce) {
  const PathId known = FindNonce(nonce);
  if (known != kNoPath) return known;
  for (PathId path = 0; path < kMaxPaths; ++path) {
    if (paths_[path] != nullptr) continue;
    paths_[path] = std::make_unique<PathEntry>();
    paths_[path]->nonce = nonce;
    return path;
  }
  return kNoPath;
}

void MemoryLink::RemoveIfUnused(PathId path) {
  const PathEntry& entry = *paths_[path];
  if (entry.users != 0 || entry.rings != 0) return;
  Flush();  // nothing may stay on the list of dirty paths
  paths_[path].reset();
}

PathId MemoryLink::Join(const Nonce& nonce) {
  const PathId path = FindNonce(nonce);
  if (path == kNoPath || paths_[path]->tx == nullptr) return kNoPath;
  ++paths_[path]->users;
  return path;
}

Expected<Status> MemoryLink::Reach(std::span<const std::byte> peer_blob, Deadline deadline) const {
  const Expected<LinkAddress> peer = ParseBlob(peer_blob);
  if (!peer) return Fail(peer.error());
  if (Status here = CheckHere(*peer, address_); !here) {
    if (OnThisHost(*peer, address_)) return here;
    return Fail(std::move(here.error()));
  }
  // The connection is given up at once: the peer takes it for one that had nothing to say.
  const Expected<FileDescriptor> socket = ConnectAbstract(SocketName(peer->nonce), deadline);
  if (!socket) return Fail(socket.error());
  return CheckUser(*socket);
}

// The blob says who the peer claims to be, the kernel who it is.
Status MemoryLink::CheckUser(const FileDescriptor& socket) const {
  if (PeerUser(socket.get()) == address_.uid) return {};
  return Fail(SetupError("the peer's device belongs to another user", /*cause=*/{},
                         "run both sides as one user"));
}

Expected<PathId> MemoryLink::Connect(std::span<const std::byte> peer_blob, const Flow& flow,
                                     Deadline deadline) {
  const Expected<LinkAddress> peer = ParseBlob(peer_blob);
  if (!peer) return Fail(peer.error());
  if (const Status here = CheckHere(*peer, address_); !here) return Fail(here.error());
  {
    DeviceLockHolder hold(lock_);
    const PathId path = Join(peer->nonce);
    if (path != kNoPath) return path;
  }
  Expected<FileDescriptor> socket = ConnectAbstract(SocketName(peer->nonce), deadline);
  if (!socket) return Fail(std::move(socket.error()));
  if (const Status own = CheckUser(*socket); !own) return Fail(own.error());
  Expected<RingMemory> ring = MakeRing(arena_bytes_);
  if (!ring) return Fail(std::move(ring.error()));
  DeviceLockHolder hold(lock_);
  // Another thread may have been faster; what was made here goes unused.
  const PathId path = Join(peer->nonce);
  if (path != kNoPath) return path;
  return Install(peer->nonce, flow, std::move(*ring), std::move(*socket));
}

Expected<PathId> MemoryLink::Install(const Nonce& nonce, const Flow& flow, RingMemory ring,
                                     FileDescriptor socket) {
  FileDescriptor bell(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell) return Fail(CallError(ErrorClass::kSetup, "eventfd", "", errno));
  const int fds[] = {ring.memfd.get(), bell.get()};
  if (!SendRecord(socket.get(), EncodeHello({.nonce = address_.nonce, .flow = flow}), fds)) {
    return Fail(CallError(ErrorClass::kSetup, "sendmsg", "ring for the peer", errno));
  }
  const PathId path = FindOrAdd(nonce);
  if (path == kNoPath) {
    return Fail(SetupError("the device has " + std::to_string(kMaxPaths) + " peers already",
                           /*cause=*/{}, "use fewer peers per device"));
  }
  const ConnectionId id = AddConnection({.socket = std::move(socket),
                                         .role = Connection::Role::kToPeer,
                                         .path = path,
                                         .ring = nullptr});
  if (id == 0) {
    const int error = errno;
    RemoveIfUnused(path);
    return Fail(CallError(ErrorClass::kSetup, "epoll_ctl", "connection to the peer", error));
  }
  PathEntry& entry = *paths_[path];
  entry.tx = std::make_unique<TxRing>(std::move(ring.mapping), std::move(bell), id);
  if (entry.users++ == 0) entry.send_flow = flow;
  return path;
}

void MemoryLink::Disconnect(PathId path) {
  Retired retired;
  DeviceLockHolder hold(lock_);
  PathEntry* entry = Find(path);
  if (entry == nullptr || entry->users == 0 || --entry->users != 0) return;
  DropTx(*entry, retired);
  entry->send_flow.reset();
  entry->arms.clear();
  RemoveIfUnused(path);
}

void MemoryLink::DropTx(PathEntry& entry, Retired& retired) {
  if (entry.tx == nullptr) return;
  Flush();  // whoever waits for what was sent is still woken
  RemoveConnection(entry.tx->connection);
  retired.push_back(entry.tx->sender.TakeMemory());
  entry.tx.reset();
}

uint32_t MemoryLink::AddChannel(int event_fd) {
  DeviceLockHolder hold(lock_);
  const uint32_t number = next_channel_++;
  channels_.push_back({number, event_fd});
  for (auto& [id, connection] : connections_) {
    if (connection.role == Connection::Role::kFromPeer) {
      OfferChannel(connection.socket.get(), number, event_fd);
    }
  }
  return number;
}

void MemoryLink::RemoveChannel(uint32_t channel_id) {
  DeviceLockHolder hold(lock_);
  std::erase_if(channels_, [channel_id](const Channel& c) { return c.number == channel_id; });
  const auto message = EncodeChannelMessage({.channel = channel_id, .offered = false});
  for (auto& [id, connection] : connections_) {
    if (connection.role == Connection::Role::kFromPeer) {
      SendRecord(connection.socket.get(), message, {});
    }
  }
}

// A peer that does not read its messages does without: it rings the bell instead.
void MemoryLink::OfferChannel(int socket, uint32_t channel, int event_fd) {
  const int fds[] = {event_fd};
  SendRecord(socket, EncodeChannelMessage({.channel = channel, .offered = true}), fds);
}

ConnectionId MemoryLink::AddConnection(Connection connection) {
  const ConnectionId id = next_connection_++;
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.socket.get(), &event) != 0) return 0;
  connections_.emplace(id, std::move(connection));
  return id;
}

// The peer sees the end at once, even if a forked child has a copy of the socket; and a copy must
// not stay in the epoll set.
void MemoryLink::RemoveConnection(ConnectionId id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  const int socket = it->second.socket.get();
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, socket, nullptr);
  ::shutdown(socket, SHUT_RDWR);
  connections_.erase(it);
}

}  // namespace verbscope::soft
