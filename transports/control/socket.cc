#include "transports/control/socket.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <chrono>

namespace verbscope {
namespace {

constexpr int kBacklog = 128;
constexpr std::chrono::seconds kBindNameTimeout{5};

Error ListenError(const SocketAddress& address, int errno_value) {
  Error error = CallError(ErrorClass::kSetup, "listen", address.ToText(), errno_value);
  error.message = fmt::format("cannot listen on {} port {}: {}", address.Host(), address.Port(),
                              ErrnoText(errno_value));
  if (errno_value == EADDRINUSE) {
    error.cause = "another process, perhaps another `verbscope serve`, listens on that port";
    error.next_step = "stop it, or choose another port with --port";
  } else if (errno_value == EACCES) {
    error.cause = "ports below 1024 need privileges";
    error.next_step = "choose a port above 1023 with --port";
  } else if (errno_value == EADDRNOTAVAIL) {
    error.cause = "no interface of this host has that address";
    error.next_step = "choose one of this host's addresses with --bind";
  }
  return error;
}

Expected<FileDescriptor> OpenListening(const SocketAddress& address) {
  FileDescriptor fd(
      ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!fd) return Fail(ListenError(address, errno));
  const int on = 1;
  const int off = 0;
  // Linux lets no two sockets listen on one port for it; it only ignores connections in TIME_WAIT.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.family() == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  }
  SetTcpOptions(fd.get());  // what is agreed on before a connection is accepted
  if (::bind(fd.get(), address.data(), address.length()) != 0 ||
      ::listen(fd.get(), kBacklog) != 0) {
    return Fail(ListenError(address, errno));
  }
  return fd;
}

bool NoIpv6(int errno_value) {
  return errno_value == EAFNOSUPPORT || errno_value == EADDRNOTAVAIL ||
         errno_value == EPROTONOSUPPORT;
}

SocketAddress AnyAddress(bool ipv6, uint16_t port) {
  if (!ipv6) {
    sockaddr_in in = {};
    in.sin_family = AF_INET;
    in.sin_addr.s_addr = htonl(INADDR_ANY);
    in.sin_port = htons(port);
    return {reinterpret_cast<const sockaddr*>(&in), sizeof(in)};
  }
  sockaddr_in6 in6 = {};
  in6.sin6_family = AF_INET6;
  in6.sin6_addr = in6addr_any;
  in6.sin6_port = htons(port);
  return {reinterpret_cast<const sockaddr*>(&in6), sizeof(in6)};
}

Expected<FileDescriptor> OpenAny(const ListenOptions& options) {
  if (options.ipv6) {
    auto fd = OpenListening(AnyAddress(/*ipv6=*/true, options.port));
    if (fd || !NoIpv6(fd.error().errno_value)) return fd;
  }
  return OpenListening(AnyAddress(/*ipv6=*/false, options.port));
}

}  // namespace

Expected<Listener> Listener::Open(const ListenOptions& options) {
  Expected<FileDescriptor> fd;
  if (options.bind_address.empty()) {
    fd = OpenAny(options);
  } else {
    const auto addresses =
        Resolve(options.bind_address, options.port, Deadline::After(kBindNameTimeout), -1);
    if (!addresses) return Fail(addresses.error());
    fd = OpenListening(addresses->front());
  }
  if (!fd) return Fail(fd.error());
  const SocketAddress address = SocketAddress::LocalOf(fd->get());
  return Listener(std::move(*fd), address);
}

Expected<std::optional<FileDescriptor>> Listener::Accept() {
  while (true) {
    FileDescriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      SetTcpOptions(fd.get());
      return std::optional<FileDescriptor>(std::move(fd));
    }
    switch (errno) {
      case EAGAIN:
        return std::nullopt;
      case EMFILE:
      case ENFILE:
      case ENOBUFS:
      case ENOMEM:
        return Fail(CallError(ErrorClass::kSetup, "accept", address_.ToText(), errno));
      case EBADF:
      case EINVAL:
      case ENOTSOCK:
        return Fail(CallError(ErrorClass::kInternal, "accept", address_.ToText(), errno));
      default:
        continue;  // EINTR, ECONNABORTED, or an error of that one connection: accept(2), "Linux"
    }
  }
}

Expected<std::pair<FileDescriptor, FileDescriptor>> MakePair() {
  int fds[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) {
    return Fail(CallError(ErrorClass::kSetup, "socketpair", "AF_UNIX", errno));
  }
  return std::make_pair(FileDescriptor(fds[0]), FileDescriptor(fds[1]));
}

void SetTcpOptions(int fd) {
  const auto set = [fd](int level, int option, int value) {
    ::setsockopt(fd, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_MAXSEG, kMaxControlSegmentBytes);
}

}  // namespace verbscope
