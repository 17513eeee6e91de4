// What happens on the sockets of a link: peers that come, offer channels, and go. Called by the
// device's helper thread, one thread at a time, without the device's lock; each event is handled
// with it.
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "transports/soft/link/epoll_ids.h"
#include "transports/soft/link/memory_link.h"
#include "transports/soft/link/unix_socket.h"

namespace verbscope::soft {
namespace {

constexpr size_t kEventsAtOnce = 64;
constexpr size_t kAcceptsAtOnce = 16;
constexpr size_t kRecordsAtOnce = 16;
// Connections that have not said hello.
constexpr size_t kMaxNewcomers = 64;

}  // namespace

void MemoryLink::Serve() {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), /*timeout=*/0);
  for (int i = 0; i < count; ++i) {
    const ConnectionId id = events[static_cast<size_t>(i)].data.u64;
    if (id == kBellId) continue;  // the caller looks at Pending
    Retired retired;              // goes after the lock
    DeviceLockHolder hold(lock_);
    if (id == kListenerId) {
      Accept(retired);
    } else {
      HandleConnection(id, retired);
    }
  }
}

void MemoryLink::Accept(Retired& retired) {
  auto newcomers = static_cast<size_t>(std::count_if(
      connections_.begin(), connections_.end(),
      [](const auto& entry) { return entry.second.role == Connection::Role::kNewcomer; }));
  for (size_t i = 0; i < kAcceptsAtOnce; ++i) {
    FileDescriptor socket = AcceptOrRefuse(listener_.get(), spare_);
    if (!socket) return;
    if (PeerUser(socket.get()) != address_.uid || newcomers >= kMaxNewcomers) continue;
    const ConnectionId id = AddConnection({.socket = std::move(socket),
                                           .role = Connection::Role::kNewcomer,
                                           .path = kNoPath,
                                           .ring = nullptr});
    if (id == 0) continue;
    ++newcomers;
    HandleConnection(id, retired);  // an honest peer has said hello already
  }
}

void MemoryLink::HandleConnection(ConnectionId id, Retired& retired) {
  for (size_t i = 0; i < kRecordsAtOnce; ++i) {
    // Looked up each time: a record may end its connection, or have come too late.
    const auto it = connections_.find(id);
    if (it == connections_.end()) return;
    Record record = ReceiveRecord(it->second.socket.get());
    if (record.kind == Record::Kind::kNone) return;
    HandleRecord(id, it->second, record, retired);
  }
}

void MemoryLink::HandleRecord(ConnectionId id, Connection& connection, Record& record,
                              Retired& retired) {
  const bool data = record.kind == Record::Kind::kData;
  switch (connection.role) {
    case Connection::Role::kNewcomer:
      if (!data || !AttachRing(connection, record)) RemoveConnection(id);
      return;
    case Connection::Role::kToPeer:
      if (data) {
        HandleChannel(connection, record);
      } else {
        DropTx(*paths_[connection.path], retired);
      }
      return;
    case Connection::Role::kFromPeer:
      // The end, or a record that no honest peer sends.
      connection.ring->receiver.Close();
      ++closed_rings_;
      RemoveConnection(id);
      ReapClosedRings(retired);
      return;
  }
}

bool MemoryLink::AttachRing(Connection& connection, Record& record) {
  const std::optional<Hello> hello = ParseHello(record.data());
  if (!hello || record.fds.size() != 2) return false;
  const int memfd = record.fds[0].get();
  const Expected<size_t> arena_bytes = CheckRing(memfd);
  if (!arena_bytes) return false;
  Mapping arena = MapArena(memfd, *arena_bytes);
  if (!arena) return false;
  // Edge triggered: each ring of the bell is one event, and nobody has to read what a peer may have
  // made something else than an eventfd.
  FileDescriptor bell = std::move(record.fds[1]);
  epoll_event event = {.events = EPOLLIN | EPOLLET, .data = {.u64 = kBellId}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell.get(), &event) != 0) return false;
  const PathId path = FindOrAdd(hello->nonce);
  if (path == kNoPath) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, bell.get(), nullptr);
    return false;
  }
  const std::optional<uint32_t> place = window_.Attach(memfd);
  if (!place) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, bell.get(), nullptr);
    RemoveIfUnused(path);
    return false;
  }
  rings_.push_back(std::make_unique<RxRing>(window_, *place, std::move(arena), path, hello->flow,
                                            std::move(bell)));
  RxRing& ring = *rings_.back();
  PathEntry& entry = *paths_[path];
  // Arms that were set before there was a ring, or in the one before this.
  if (entry.rx != nullptr) entry.arms = TakeArms(entry.rx->receiver.head());
  for (const ArmEntry& arm : entry.arms) SetArm(ring.receiver.head(), arm);
  entry.arms.clear();
  if (asleep_) SetBell(ring.receiver.head());
  entry.rx = &ring;
  ++entry.rings;
  entry.receive_flow = hello->flow;
  connection.role = Connection::Role::kFromPeer;
  connection.path = path;
  connection.ring = &ring;
  for (const Channel& c : channels_) OfferChannel(connection.socket.get(), c.number, c.event_fd);
  return true;
}

void MemoryLink::HandleChannel(Connection& connection, Record& record) {
  const std::optional<ChannelMessage> message = ParseChannelMessage(record.data());
  TxRing* tx = paths_[connection.path]->tx.get();
  if (!message || tx == nullptr) return;
  if (!message->offered) {
    tx->waker.RemoveChannel(message->channel);
  } else if (record.fds.size() == 1 && IsEventFd(record.fds[0].get())) {
    tx->waker.AddChannel(message->channel, std::move(record.fds[0]));
  }
}

void MemoryLink::ReapClosedRings(Retired& retired) {
  for (size_t i = 0; i < rings_.size();) {
    RxRing& ring = *rings_[i];
    if (ring.receiver.Closed() && ring.receiver.Drained()) {
      DetachRing(ring, retired);
      rings_.erase(rings_.begin() + static_cast<ptrdiff_t>(i));
      --closed_rings_;
      turn_ = 0;
    } else {
      ++i;
    }
  }
}

void MemoryLink::DetachRing(RxRing& ring, Retired& retired) {
  const PathId path = ring.receiver.path();
  PathEntry& entry = *paths_[path];
  // The sender has a copy of the bell, so closing ours would not take it out of the set.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ring.bell.get(), nullptr);
  if (entry.rx == &ring) {
    if (entry.users != 0) entry.arms = TakeArms(ring.receiver.head());
    entry.rx = nullptr;
  }
  --entry.rings;
  retired.push_back(ring.receiver.TakeArena());
  RemoveIfUnused(path);
}

}  // namespace verbscope::soft
