// How a process gets its place on a shared port: as the first, or from the keeper.
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "transports/soft/link/port_sharing.h"
#include "transports/soft/link/port_sharing_ids.h"

namespace verbscope::soft {
namespace {

// Between two tries, while a keeper dies or the next is found.
constexpr std::chrono::milliseconds kPause(1);

int PeerPid(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return credentials.pid;
}

std::string Port(const LocalAddress& address) {
  return fmt::format("UDP port {} of {}", kRoceUdpPort, address.ToText());
}

Error HeldByAnother(const LocalAddress& address, uint32_t uid) {
  return SetupError(fmt::format("{} cannot be shared", Port(address)),
                    fmt::format("a process of user {} holds the name of the port's keeper", uid),
                    "use another addr=, or run all processes as one user");
}

Error NoRoom(const LocalAddress& address, uint32_t errno_value) {
  Error error;
  error.errno_value = static_cast<int>(errno_value);
  error.error_class = ErrorClass::kSetup;
  error.message = fmt::format("{} cannot be shared by one process more: {}", Port(address),
                              ErrnoText(error.errno_value));
  if (error.errno_value == ENOSPC) {
    error.cause = fmt::format("{} processes share it", kMaxSharedSlots);
  }
  error.next_step = "use another addr=";
  return error;
}

}  // namespace

Expected<std::unique_ptr<PortSharing>> PortSharing::Join(const LocalAddress& address,
                                                         Deadline deadline) {
  std::unique_ptr<PortSharing> port(new PortSharing(address));
  if (Status ready = port->Prepare(); !ready) return Fail(std::move(ready.error()));
  for (;;) {
    const Expected<Joined> joined = port->TryToJoin(deadline);
    if (!joined) return Fail(joined.error());
    if (*joined == Joined::kYes) return port;
    // What a keeper told that is gone may be out of date.
    port->slots_.clear();
    port->life_.Reset();
    if (deadline.Passed()) return Fail(port->NotLetIn());
    std::this_thread::sleep_for(kPause);
  }
}

Expected<PortSharing::Joined> PortSharing::TryToJoin(Deadline deadline) {
  for (const PortHolder& holder : table_.Holders(address_)) {
    if (!holder.wildcard && holder.uid != uid_) return Fail(CannotBind(address_, EADDRINUSE));
  }
  // Where there are sockets, there are members, and one of them has to be the keeper: only they
  // know the sockets' order.
  if (!AnyHolder()) {
    Expected<FileDescriptor> listener = ListenAbstract(name_);
    if (listener) return Found(std::move(*listener));
    if (listener.error().errno_value != EADDRINUSE) return Fail(std::move(listener.error()));
  }
  Expected<FileDescriptor> socket = ConnectAbstract(name_, deadline);
  if (!socket) {
    if (socket.error().errno_value == ECONNREFUSED) return Joined::kAgain;
    if (socket.error().error_class == ErrorClass::kDeadline) return Fail(NotLetIn());
    return Fail(std::move(socket.error()));
  }
  const uint32_t user = PeerUser(socket->get()).value_or(uid_);
  if (user != uid_) return Fail(HeldByAnother(address_, user));
  return AskKeeper(std::move(*socket), deadline);
}

bool PortSharing::AnyHolder() const {
  const std::vector<PortHolder> holders = table_.Holders(address_);
  return std::any_of(holders.begin(), holders.end(),
                     [](const PortHolder& holder) { return !holder.wildcard; });
}

// This process has the name, and is the first or after the last.
Expected<PortSharing::Joined> PortSharing::Found(FileDescriptor listener) {
  if (AnyHolder()) return Joined::kAgain;  // they were faster, or are on their way out
  const std::optional<uint64_t> id = NewSlotId();
  if (!id) return Fail(CallError(ErrorClass::kSetup, "getrandom", "", errno));
  Expected<FileDescriptor> life = NewLife();
  if (!life) return Fail(std::move(life.error()));
  Expected<FileDescriptor> socket = BindShared(address_);
  if (!socket) return Fail(std::move(socket.error()));
  tag_ = last_tag_ = 1;
  my_id_ = *id;
  my_slot_ = 0;
  slots_.push_back({.id = my_id_,
                    .tag = tag_,
                    .socket = std::move(*socket),
                    .life = std::move(*life),
                    .deaf = false});
  Status steered = SteerByTag(fd(), TagsOf(slots_), my_slot_);
  if (!steered) return Fail(std::move(steered.error()));
  BecomeKeeper(std::move(listener));
  return Joined::kYes;
}

Expected<PortSharing::Joined> PortSharing::AskKeeper(FileDescriptor socket, Deadline deadline) {
  keeper_pid_ = PeerPid(socket.get());
  Expected<FileDescriptor> life = NewLife();
  if (!life) return Fail(std::move(life.error()));
  const std::array<int, 1> fds = {life->get()};
  const SharingMessage hello = {.kind = SharingMessage::Kind::kHello};
  if (!SendRecord(socket.get(), EncodeSharingMessage(hello), fds)) return Joined::kAgain;
  life->Reset();
  for (;;) {
    Record record = ReceiveRecord(socket.get());
    if (record.kind != Record::Kind::kNone) {
      const Expected<Joined> joined = HandleAnswer(socket, record);
      if (!joined || *joined == Joined::kYes || !socket) return joined;
      continue;
    }
    if (deadline.Passed()) return Fail(NotLetIn());
    pollfd wait = {.fd = socket.get(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, deadline.PollTimeoutMs());
  }
}

// kAgain: not yet, or never if `socket` has been closed.
Expected<PortSharing::Joined> PortSharing::HandleAnswer(FileDescriptor& socket, Record& record) {
  if (record.kind == Record::Kind::kEnd && record.size != 0) {
    return Fail(NoRoom(address_, EMFILE));
  }
  const std::optional<SharingMessage> message = ParseSharingMessage(record.data());
  if (message && message->kind == SharingMessage::Kind::kRefused) {
    return Fail(NoRoom(address_, message->errno_value));
  }
  if (message && message->kind == SharingMessage::Kind::kEntry &&
      ApplyEntry(*message, record.fds)) {
    return Joined::kAgain;
  }
  if (!message || message->kind != SharingMessage::Kind::kWelcome ||
      message->index >= slots_.size() || slots_[message->index].id != message->id) {
    socket.Reset();  // the keeper has gone
    return Joined::kAgain;
  }
  if (!Watch(socket.get(), kSharingKeeperId)) {
    return Fail(CallError(ErrorClass::kSetup, "epoll_ctl", "keeper", errno));
  }
  my_slot_ = message->index;
  my_id_ = message->id;
  tag_ = slots_[my_slot_].tag;
  to_keeper_ = std::move(socket);
  return Joined::kYes;
}

// Keeps the writing end in life_ and returns the reading end.
Expected<FileDescriptor> PortSharing::NewLife() {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "pipe2", "", errno));
  }
  life_.Reset(ends[1]);
  return FileDescriptor(ends[0]);
}

Error PortSharing::NotLetIn() const {
  Error error;
  if (keeper_pid_ != 0) {
    error = SetupError(
        fmt::format("process {} keeps {} and does not let this process in", keeper_pid_,
                    Port(address_)),
        "it is stopped, or waits for another that shares the port: a stopped one, or what one that "
        "ended has forked",
        "continue or end the stopped process, or use another addr=");
  } else {
    error =
        SetupError(fmt::format("{} is held by sockets of this user, and nobody answers for them",
                               Port(address_)),
                   "another program has it, or all processes that share it are stopped",
                   "end them, or use another addr=");
    error.errno_value = EADDRINUSE;
  }
  error.error_class = ErrorClass::kDeadline;
  return error;
}

}  // namespace verbscope::soft
