// A member's side of sharing a port: what the keeper says, and what to do when it is gone.
#include <sys/epoll.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "transports/soft/link/port_sharing.h"
#include "transports/soft/link/port_sharing_ids.h"

namespace verbscope::soft {

void PortSharing::ReadKeeper() {
  bool ended = false;
  for (int i = 0; i < kSharingRecordsAtOnce; ++i) {
    Record record = ReceiveRecord(to_keeper_.get());
    if (record.kind == Record::Kind::kNone) return;
    if (record.kind == Record::Kind::kData) {
      ended = false;
      if (HandleFromKeeper(record)) continue;
      incomplete_ = true;
      return LoseKeeper();
    }
    if (record.size != 0) {  // cut off: no descriptors left for what it brought
      incomplete_ = true;
      return LoseKeeper();
    }
    // A keeper that died with unread messages gives ECONNRESET first, before what it has sent. All
    // of that must be read: the next keeper has to know it.
    if (ended) return LoseKeeper();
    ended = true;
  }
}

bool PortSharing::HandleFromKeeper(Record& record) {
  const std::optional<SharingMessage> message = ParseSharingMessage(record.data());
  if (!message) return false;
  switch (message->kind) {
    case SharingMessage::Kind::kEntry:
      return ApplyEntry(*message, record.fds);
    case SharingMessage::Kind::kWant:
      for (size_t i = message->index; i < slots_.size(); ++i) {
        if (!SendEntry(to_keeper_.get(), i)) return false;  // asked again when registered again
      }
      return true;
    case SharingMessage::Kind::kWelcome:
      if (message->index != my_slot_ || message->id != my_id_) return false;
      incomplete_ = false;
      seek_at_once_ = true;
      return true;
    case SharingMessage::Kind::kHello:
    case SharingMessage::Kind::kRefused:
      return false;
  }
  return false;
}

void PortSharing::LoseKeeper() {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, to_keeper_.get(), nullptr);
  to_keeper_.Reset();
  ++counts_.elections;
}

void PortSharing::SeekKeeper() {
  seek_at_once_ = false;
  if (!incomplete_) {
    Expected<FileDescriptor> listener = ListenAbstract(name_);
    if (listener) return BecomeKeeper(std::move(*listener));
    if (listener.error().errno_value != EADDRINUSE) ++counts_.faults;
  }
  Expected<FileDescriptor> socket =
      ConnectAbstract(name_, Deadline::After(std::chrono::nanoseconds(0)));
  // Refused: just bound and not listening yet, or dead already. Another turn will tell.
  if (!socket) return;
  if (PeerUser(socket->get()) != uid_) {
    ++counts_.refused;
    return;
  }
  const SharingMessage hello = {.kind = SharingMessage::Kind::kHello,
                                .index = static_cast<uint32_t>(my_slot_),
                                .slots = static_cast<uint32_t>(slots_.size()),
                                .id = my_id_};
  if (!SendRecord(socket->get(), EncodeSharingMessage(hello), {}) ||
      !Watch(socket->get(), kSharingKeeperId)) {
    ++counts_.faults;
    return;
  }
  to_keeper_ = std::move(*socket);
}

}  // namespace verbscope::soft
