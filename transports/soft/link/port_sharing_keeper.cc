// The keeper's side of sharing a port: who comes, who is told what, who gets which slot.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "transports/soft/link/port_sharing.h"
#include "transports/soft/link/port_sharing_ids.h"

namespace verbscope::soft {
namespace {

constexpr int kAcceptsAtOnce = 16;
constexpr int kAdmissionsAtOnce = 8;
constexpr size_t kMaxStrangers = 64;

using Kind = SharingMessage::Kind;

bool Say(int socket, const SharingMessage& message) {
  return SendRecord(socket, EncodeSharingMessage(message), {});
}

}  // namespace

void PortSharing::BecomeKeeper(FileDescriptor listener) {
  if (!Watch(listener.get(), kSharingListenerId)) {
    ++counts_.faults;
    return;  // the name is free again
  }
  listener_ = std::move(listener);
  // The dead keeper's may be a step ahead of what this one knows.
  Steer();
}

void PortSharing::Accept() {
  auto strangers = static_cast<size_t>(std::count_if(
      connections_.begin(), connections_.end(),
      [](const auto& entry) { return entry.second.role == Connection::Role::kStranger; }));
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    FileDescriptor socket = AcceptOrRefuse(listener_.get(), spare_);
    if (!socket) return;
    if (PeerUser(socket.get()) != uid_ || strangers >= kMaxStrangers) {
      ++counts_.refused;
      continue;
    }
    const SocketId id = next_id_++;
    if (!Watch(socket.get(), id)) {
      ++counts_.faults;
      continue;
    }
    Connection connection;
    connection.socket = std::move(socket);
    connections_.emplace(id, std::move(connection));
    ++strangers;
    HandleConnection(id);  // an honest one has said hello already
  }
}

void PortSharing::HandleConnection(SocketId id) {
  const auto it = connections_.find(id);
  if (it == connections_.end()) return;
  for (int i = 0; i < kSharingRecordsAtOnce; ++i) {
    Record record = ReceiveRecord(it->second.socket.get());
    if (record.kind == Record::Kind::kNone) return;
    const bool data = record.kind == Record::Kind::kData;
    if (data && HandleRecord(it->second, record)) continue;
    if (data) ++counts_.refused;
    return Remove(id);
  }
}

// False: no member would say this; the connection ends.
bool PortSharing::HandleRecord(Connection& connection, Record& record) {
  const std::optional<SharingMessage> message = ParseSharingMessage(record.data());
  if (!message) return false;
  if (message->kind == Kind::kHello) return HandleHello(connection, *message, record);
  if (message->kind != Kind::kEntry || !connection.has_slot()) return false;
  // A socket that the last keeper made and had no time to tell all of. Others may have told.
  if (message->index < slots_.size()) return true;
  return ApplyEntry(*message, record.fds) && Steer();
}

bool PortSharing::HandleHello(Connection& connection, const SharingMessage& hello, Record& record) {
  if (connection.role != Connection::Role::kStranger) return false;
  if (hello.index == kNoSlot) {
    if (record.fds.size() != 1 || !IsPipe(record.fds[0].get())) return false;
    connection.life = std::move(record.fds[0]);
    connection.role = Connection::Role::kWaiting;
    return true;
  }
  if (hello.index >= slots_.size() || hello.index == my_slot_ ||
      slots_[hello.index].id != hello.id || OwnerOf(hello.index) != nullptr) {
    return false;
  }
  connection.slot = hello.index;
  connection.role = Connection::Role::kPlaced;
  if (hello.slots <= slots_.size()) return true;
  return Say(connection.socket.get(),
             {.kind = Kind::kWant, .index = static_cast<uint32_t>(slots_.size())});
}

const PortSharing::Connection* PortSharing::OwnerOf(size_t slot) const {
  for (const auto& [id, connection] : connections_) {
    if (connection.has_slot() && connection.slot == slot) return &connection;
  }
  return nullptr;
}

void PortSharing::Remove(SocketId id) {
  const auto it = connections_.find(id);
  // A forked child may have a copy of the socket, so closing ours may not take it out of the set.
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.socket.get(), nullptr);
  connections_.erase(it);
}

void PortSharing::DeafenDead() {
  const std::vector<bool> dead = DeadOwners(slots_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!dead[i] || slots_[i].deaf) continue;
    MakeDeaf(slots_[i].socket.get());
    slots_[i].deaf = true;
  }
}

// Lets newcomers in, one after the other: each change is told to all before the next.
void PortSharing::Advance() {
  DeafenDead();
  for (int i = 0; i < kAdmissionsAtOnce; ++i) {
    if (!TellAll()) return;
    const bool waiting = std::any_of(
        connections_.begin(), connections_.end(),
        [](const auto& entry) { return entry.second.role == Connection::Role::kWaiting; });
    if (!waiting || !CanAdmit()) return;
    AdmitOne();
  }
}

// False: somebody has not been told all, because there is no room in a queue.
bool PortSharing::TellAll() {
  bool all = true;
  for (auto& [id, connection] : connections_) {
    if (connection.has_slot() && !Tell(connection)) all = false;
  }
  if (!all) return false;
  for (auto& [id, connection] : connections_) {
    if (connection.role != Connection::Role::kPlaced) continue;
    const SharedSlot& slot = slots_[connection.slot];
    if (!Say(connection.socket.get(), {.kind = Kind::kWelcome,
                                       .index = static_cast<uint32_t>(connection.slot),
                                       .tag = slot.tag,
                                       .id = slot.id})) {
      return false;
    }
    connection.role = Connection::Role::kMember;
  }
  return true;
}

bool PortSharing::Tell(Connection& connection) {
  connection.sent.resize(slots_.size(), 0);
  int told = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (connection.sent[i] == slots_[i].id) continue;
    if (++told > kSharingRecordsAtOnce || !SendEntry(connection.socket.get(), i)) return false;
    connection.sent[i] = slots_[i].id;
  }
  return true;
}

bool PortSharing::CanAdmit() const {
  const std::vector<bool> dead = DeadOwners(slots_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (i != my_slot_ && !dead[i] && OwnerOf(i) == nullptr) return false;
  }
  return SameAsKernel(slots_, table_, address_);
}

void PortSharing::AdmitOne() {
  const auto it = std::find_if(connections_.begin(), connections_.end(), [](const auto& entry) {
    return entry.second.role == Connection::Role::kWaiting;
  });
  if (it == connections_.end()) return;
  errno = 0;
  if (Place(it->second)) {
    ++counts_.admitted;
    return;
  }
  const auto error = static_cast<uint32_t>(errno != 0 ? errno : EIO);
  Say(it->second.socket.get(), {.kind = Kind::kRefused, .errno_value = error});
  Remove(it->first);
}

// False with errno set: there is no slot to be had.
bool PortSharing::Place(Connection& connection) {
  const std::optional<uint64_t> id = NewSlotId();
  if (!id) return false;
  const std::vector<bool> dead = DeadOwners(slots_);
  size_t index = 0;
  // One that is dead but still hears might have queued packets of its owner.
  while (index < slots_.size() && !(dead[index] && slots_[index].deaf)) ++index;
  if (index == slots_.size()) {
    if (index == kMaxSharedSlots) {
      errno = ENOSPC;
      return false;
    }
    Expected<FileDescriptor> socket = BindShared(address_);
    if (!socket) {
      errno = socket.error().errno_value;
      return false;
    }
    slots_.emplace_back().socket = std::move(*socket);
  }
  last_tag_ = NextTag(slots_, last_tag_);
  SharedSlot& slot = slots_[index];
  slot.id = *id;
  slot.tag = last_tag_;
  slot.life = std::move(connection.life);
  slot.deaf = false;
  connection.slot = index;
  connection.role = Connection::Role::kPlaced;
  if (!Steer()) return false;
  MakeHear(slot.socket.get());
  return true;
}

bool PortSharing::Steer() {
  const Status steered = SteerByTag(fd(), TagsOf(slots_), my_slot_);
  if (!steered) ++counts_.faults;
  return static_cast<bool>(steered);
}

}  // namespace verbscope::soft
