#include "transports/soft/link/port_sharing.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transports/soft/link/port_sharing_ids.h"

namespace verbscope::soft {
namespace {

constexpr size_t kEventsAtOnce = 64;
// What gives no event is looked at again after 1, 2, 4 … ms.
constexpr int kMaxTickMs = 64;

}  // namespace

PortSharing::PortSharing(const LocalAddress& address)
    : address_(address),
      uid_(::geteuid()),
      name_(KeeperName(uid_, address)),
      next_id_(kSharingFirstConnectionId) {}

Status PortSharing::Prepare() {
  Expected<PortTable> table = PortTable::Open();
  if (!table) return Fail(std::move(table.error()));
  table_ = std::move(*table);
  epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Fail(CallError(ErrorClass::kSetup, "epoll_create1", "", errno));
  timer_.Reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer_) return Fail(CallError(ErrorClass::kSetup, "timerfd_create", "", errno));
  spare_.Reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!Watch(timer_.get(), kSharingTimerId)) {
    return Fail(CallError(ErrorClass::kSetup, "epoll_ctl", "timerfd", errno));
  }
  return {};
}

void PortSharing::Serve() {
  bool ticked = false;
  std::array<epoll_event, kEventsAtOnce> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), /*timeout=*/0);
  for (int i = 0; i < count; ++i) {
    const SocketId id = events[static_cast<size_t>(i)].data.u64;
    if (id == kSharingTimerId) {
      uint64_t expirations;
      [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &expirations, sizeof(expirations));
      ticked = true;
      tick_ms_ = std::min(tick_ms_ * 2, kMaxTickMs);
      continue;
    }
    if (id == kSharingKeeperId) {
      ReadKeeper();
      continue;
    }
    tick_ms_ = 1;  // something moves
    if (id == kSharingListenerId) {
      Accept();
    } else {
      HandleConnection(id);
    }
  }
  if (!keeper() && !to_keeper_ && (ticked || seek_at_once_)) SeekKeeper();
  if (keeper()) Advance();
  SetTimer();
}

bool PortSharing::Watch(int fd, SocketId id) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

bool PortSharing::ApplyEntry(const SharingMessage& message, std::vector<FileDescriptor>& fds) {
  const size_t index = message.index;
  if (index > slots_.size() || fds.size() != 2 || !IsSharedSocket(fds[0].get(), address_) ||
      !IsPipe(fds[1].get())) {
    return false;
  }
  if (index == my_slot_) return message.id == my_id_;  // fd() must stay what it is
  const uint64_t inode = InodeOf(fds[0].get());
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (i != index && InodeOf(slots_[i].socket.get()) == inode) return false;
  }
  if (index < slots_.size()) {
    // The same socket as ever; only its owner may be another one.
    if (InodeOf(slots_[index].socket.get()) != inode) return false;
    if (slots_[index].id == message.id) return true;
  }
  last_tag_ = static_cast<uint8_t>(message.tag);
  SharedSlot slot = {.id = message.id,
                     .tag = last_tag_,
                     .socket = std::move(fds[0]),
                     .life = std::move(fds[1]),
                     .deaf = false};
  if (index == slots_.size()) {
    slots_.push_back(std::move(slot));
  } else {
    slots_[index] = std::move(slot);
  }
  return true;
}

bool PortSharing::SendEntry(int socket, size_t index) {
  const SharedSlot& slot = slots_[index];
  const std::array<int, 2> fds = {slot.socket.get(), slot.life.get()};
  return SendRecord(socket,
                    EncodeSharingMessage({.kind = SharingMessage::Kind::kEntry,
                                          .index = static_cast<uint32_t>(index),
                                          .tag = slot.tag,
                                          .id = slot.id}),
                    fds);
}

// Whether something is awaited that gives no event: a name that gets free, room in a socket's
// queue, a dying process that is not quite dead.
bool PortSharing::NeedsTick() const {
  if (!keeper()) return !to_keeper_;
  size_t registered = 0;
  for (const auto& [id, connection] : connections_) {
    if (connection.role == Connection::Role::kWaiting ||
        connection.role == Connection::Role::kPlaced) {
      return true;
    }
    if (connection.role == Connection::Role::kMember) ++registered;
  }
  const auto deaf = static_cast<size_t>(
      std::count_if(slots_.begin(), slots_.end(), [](const SharedSlot& s) { return s.deaf; }));
  return registered + deaf + 1 < slots_.size();
}

void PortSharing::SetTimer() {
  const bool needed = NeedsTick();
  if (!needed) tick_ms_ = 1;
  itimerspec time = {};
  time.it_value.tv_nsec = needed ? tick_ms_ * 1'000'000L : 0;  // 0 disarms
  ::timerfd_settime(timer_.get(), 0, &time, nullptr);
}

}  // namespace verbscope::soft
