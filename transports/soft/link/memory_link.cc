// The data path, and the making of a link. Everything here is called with the device's lock held,
// but for what memory_link.h says otherwise.
#include "transports/soft/link/memory_link.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>

#include "transports/soft/link/epoll_ids.h"

namespace verbscope::soft {

MemoryLink::MemoryLink(DeviceLock& lock, Counters& counters, Mapping window)
    : lock_(lock),
      counters_(counters),
      arena_bytes_(DefaultArenaBytes()),
      window_(std::move(window)),
      next_connection_(kFirstConnectionId) {}

Expected<std::unique_ptr<MemoryLink>> MemoryLink::Create(DeviceLock& lock, Counters& counters) {
  Mapping window = RxWindow::Reserve();
  if (!window) return Fail(CallError(ErrorClass::kSetup, "mmap", "window of rings", errno));
  std::unique_ptr<MemoryLink> link(new MemoryLink(lock, counters, std::move(window)));
  if (Status opened = link->Open(); !opened) return Fail(std::move(opened.error()));
  return link;
}

Status MemoryLink::Open() {
  Expected<LinkAddress> address = MakeLocalAddress();
  if (!address) return Fail(std::move(address.error()));
  address_ = *address;
  Expected<FileDescriptor> listener = ListenAbstract(SocketName(address_.nonce));
  if (!listener) return Fail(std::move(listener.error()));
  listener_ = std::move(*listener);
  spare_.Reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  epoll_.Reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return Fail(CallError(ErrorClass::kSetup, "epoll_create1", "", errno));
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kListenerId}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.get(), &event) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "epoll_ctl", "listener", errno));
  }
  return {};
}

// Shut down, not only closed: a forked child may hold copies.
MemoryLink::~MemoryLink() {
  for (auto& [id, connection] : connections_) ::shutdown(connection.socket.get(), SHUT_RDWR);
}

std::vector<std::byte> MemoryLink::LocalBlob() const { return EncodeBlob(address_); }

int MemoryLink::wait_fd() const { return epoll_.get(); }

bool MemoryLink::Send(PathId path, const Header& header, PayloadPieces payload) {
  PathEntry* entry = Find(path);
  if (entry == nullptr || entry->tx == nullptr) [[unlikely]] {
    ++counters_.send_err;
    return true;
  }
  const RingSender::Result result = entry->tx->sender.Send(header, payload);
  if (result == RingSender::Result::kSent) [[likely]] {
    MarkDirty(path, *entry);
    return true;
  }
  if (result == RingSender::Result::kFull) return false;
  ++counters_.send_err;
  return true;
}

bool MemoryLink::SendRaw(PathId path, std::span<const std::byte> packet) {
  PathEntry* entry = Find(path);
  if (entry == nullptr || entry->tx == nullptr) {
    ++counters_.send_err;
    return true;
  }
  const RingSender::Result result = entry->tx->sender.SendRaw(packet);
  if (result == RingSender::Result::kFull) return false;
  if (result == RingSender::Result::kSent) {
    MarkDirty(path, *entry);
  } else {
    ++counters_.send_err;
  }
  return true;
}

bool MemoryLink::CanSend(PathId path) const {
  const PathEntry* entry = Find(path);
  return entry == nullptr || entry->tx == nullptr || entry->tx->sender.HasRoom();
}

size_t MemoryLink::Poll(PacketReceiver& receiver, size_t budget) {
  const size_t count = rings_.size();
  size_t taken = 0;
  for (size_t i = 0; i < count && taken < budget; ++i) {
    taken += rings_[turn_]->receiver.Poll(receiver, budget - taken, counters_);
    if (++turn_ == count) turn_ = 0;
  }
  if (closed_rings_ != 0) [[unlikely]] {
    Retired retired;
    ReapClosedRings(retired);
  }
  return taken;
}

bool MemoryLink::Pending() const { return window_.Pending(); }

void MemoryLink::Flush() {
  if (dirty_count_ == 0) return;
  FullFence();
  for (size_t i = 0; i < dirty_count_; ++i) {
    PathEntry& entry = *paths_[dirty_[i]];
    entry.dirty = false;
    if (entry.tx == nullptr) continue;
    RingSender& sender = entry.tx->sender;
    if (std::atomic_ref(sender.head().attention).load(std::memory_order_relaxed) != 0)
        [[unlikely]] {
      entry.tx->waker.Wake(sender, wakes_);
    }
    sender.Flushed();
  }
  dirty_count_ = 0;
}

const Flow* MemoryLink::SendFlow(PathId path) const {
  const PathEntry* entry = Find(path);
  return entry != nullptr && entry->send_flow ? &*entry->send_flow : nullptr;
}

const Flow* MemoryLink::ReceiveFlow(PathId path) const {
  const PathEntry* entry = Find(path);
  return entry != nullptr && entry->receive_flow ? &*entry->receive_flow : nullptr;
}

bool MemoryLink::Alive(PathId path) const {
  const PathEntry* entry = Find(path);
  return entry != nullptr && entry->tx != nullptr;
}

bool MemoryLink::PrepareSleep() {
  for (const auto& ring : rings_) SetBell(ring->receiver.head());
  asleep_ = true;
  FullFence();
  if (!Pending()) return true;
  Awake();
  return false;
}

void MemoryLink::Awake() {
  asleep_ = false;
  for (const auto& ring : rings_) ClearBell(ring->receiver.head());
}

void MemoryLink::Arm(PathId path, uint32_t qpn, ArmSide side, uint32_t channel_id,
                     bool solicited_only) {
  PathEntry* entry = Find(path);
  if (entry == nullptr) return;
  const ArmEntry arm = ArmEntry::Make(qpn, side, channel_id, solicited_only);
  if (entry->rx != nullptr) {
    SetArm(entry->rx->receiver.head(), arm);
  } else {
    entry->ForgetArm(side, arm.slot);
    entry->arms.push_back(arm);
  }
  FullFence();
}

void MemoryLink::Disarm(PathId path, uint32_t qpn, ArmSide side) {
  PathEntry* entry = Find(path);
  if (entry == nullptr) return;
  const uint32_t slot = qpn % kArmSlots;
  if (entry->rx != nullptr) ClearArm(entry->rx->receiver.head(), side, slot);
  entry->ForgetArm(side, slot);
}

const WakeCounts& MemoryLink::wakes() const { return wakes_; }

}  // namespace verbscope::soft
