#include "transports/soft/link/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "core/base/error.h"

namespace verbscope::soft {
namespace {

constexpr int kSocketType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr size_t kMaxFds = 4;  // twice what any message of ours has

struct Address {
  sockaddr_un un = {};
  socklen_t size = 0;
};

Address AbstractAddress(std::string_view name) {
  Address address;
  address.un.sun_family = AF_UNIX;
  const size_t bytes = std::min(name.size(), sizeof(address.un.sun_path) - 1);
  std::memcpy(address.un.sun_path + 1, name.data(), bytes);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return address;
}

const sockaddr* Generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address.un);
}

Error NobodyThere(int error) {
  Error result =
      SetupError("the peer's device does not answer on this host",
                 "its process has ended, has closed the device, or is in another network namespace",
                 "start the peer again");
  result.errno_value = error;
  return result;
}

Error NobodyAccepts() {
  Error result = SetupError("the peer's device accepts no connection",
                            "its process is stopped, or flooded with connections",
                            "look at the peer's process");
  result.error_class = ErrorClass::kDeadline;
  result.errno_value = EAGAIN;
  return result;
}

// Takes the descriptors out of all control messages, whatever they are.
void CollectFds(msghdr& message, std::vector<FileDescriptor>& fds) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      fds.emplace_back(fd);
    }
  }
}

}  // namespace

Expected<FileDescriptor> ListenAbstract(std::string_view name) {
  FileDescriptor socket(::socket(AF_UNIX, kSocketType, 0));
  if (!socket) return Fail(CallError(ErrorClass::kSetup, "socket", "AF_UNIX", errno));
  const Address address = AbstractAddress(name);
  if (::bind(socket.get(), Generic(address), address.size) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "bind", name, errno));
  }
  if (::listen(socket.get(), SOMAXCONN) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "listen", name, errno));
  }
  return socket;
}

Expected<FileDescriptor> ConnectAbstract(std::string_view name, Deadline deadline) {
  FileDescriptor socket(::socket(AF_UNIX, kSocketType, 0));
  if (!socket) return Fail(CallError(ErrorClass::kSetup, "socket", "AF_UNIX", errno));
  const Address address = AbstractAddress(name);
  for (;;) {
    if (::connect(socket.get(), Generic(address), address.size) == 0) return socket;
    if (errno == ECONNREFUSED || errno == ENOENT) return Fail(NobodyThere(errno));
    if (errno != EAGAIN && errno != EINTR) {
      return Fail(CallError(ErrorClass::kSetup, "connect", name, errno));
    }
    // A full queue gives no event to wait for.
    if (deadline.Passed()) return Fail(NobodyAccepts());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

FileDescriptor AcceptOne(int listener) {
  return FileDescriptor(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

FileDescriptor AcceptOrRefuse(int listener, FileDescriptor& spare) {
  FileDescriptor socket = AcceptOne(listener);
  if (!socket && (errno == EMFILE || errno == ENFILE)) {
    spare.Reset();
    AcceptOne(listener);
    spare.Reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  return socket;
}

std::optional<uint32_t> PeerUser(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials.uid;
}

bool SendRecord(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  iovec part = {.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

Record ReceiveRecord(int socket) {
  Record record;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  iovec part = {.iov_base = record.bytes.data(), .iov_len = record.bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t got;
  do {
    got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    record.kind =
        errno == EAGAIN || errno == EWOULDBLOCK ? Record::Kind::kNone : Record::Kind::kEnd;
    return record;
  }
  CollectFds(message, record.fds);
  record.size = static_cast<size_t>(got);
  const bool cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  record.kind = got == 0 || cut ? Record::Kind::kEnd : Record::Kind::kData;
  return record;
}

bool IsEventFd(int fd) {
  char target[64];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = ::readlink(link.c_str(), target, sizeof(target));
  return size > 0 && std::string_view(target, static_cast<size_t>(size)) == "anon_inode:[eventfd]";
}

}  // namespace verbscope::soft
