// Sockets of the control channel: connect, listen, or a pair within one process.
//
// Every socket handed out is non-blocking and close-on-exec; TCP ones have TCP_NODELAY (frames are
// small and waited for) and keepalive. The caller owns what it gets. Free functions may be called
// from any thread; a Listener belongs to one.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_SOCKET_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_SOCKET_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/base/deadline.h"
#include "core/base/error.h"
#include "core/base/file_descriptor.h"
#include "transports/control/address.h"

namespace verbscope {

struct ConnectOptions {
  std::string host;          // name or address, see Resolve
  uint16_t port = 0;         // 1 … 65535
  std::string bind_address;  // address to connect from; empty: the kernel's choice by route
  Deadline deadline = Deadline::After(std::chrono::seconds(10));
  int interrupt_fd = -1;  // readable: give up with kInterrupted
  std::chrono::milliseconds retry_interval{100};
  // An address that does not answer holds up the next one no longer than this (RFC 8305 section 5).
  std::chrono::milliseconds next_address_after{250};
  ResolveFunction resolve = SystemResolve;
};

// Connects to the first address of the host that answers. Refused, unreachable and unanswered
// addresses are tried until the deadline, so the server may start after the client. The error
// (kSetup) names each address with port and errno text, one line per address, and its cause tells
// refused (no server) from no answer (filtered) from unreachable. errno_value is that of the cause.
Expected<FileDescriptor> Connect(const ConnectOptions& options);

struct ListenOptions {
  std::string bind_address;  // empty: all addresses of both families through one socket
  uint16_t port = 0;         // 0: any free one, see Listener::port
  bool ipv6 = true;          // false: as on a kernel without IPv6, only 0.0.0.0 when all
};

class Listener {
 public:
  // kSetup error naming the port when it is taken or not permitted.
  static Expected<Listener> Open(const ListenOptions& options);

  uint16_t port() const { return address_.Port(); }
  const SocketAddress& address() const { return address_; }
  int fd() const { return fd_.get(); }  // readable when a connection waits

  // The next connection that waits, without waiting for one; nullopt when there is none. An error
  // means the process or the host is out of descriptors or memory: the connection stays queued and
  // fd() readable, so the caller must pause instead of calling again at once.
  Expected<std::optional<FileDescriptor>> Accept();

 private:
  Listener(FileDescriptor fd, const SocketAddress& address)
      : fd_(std::move(fd)), address_(address) {}
  FileDescriptor fd_;
  SocketAddress address_;
};

// Two connected stream sockets in this process, for both ends of a loopback run.
Expected<std::pair<FileDescriptor, FileDescriptor>> MakePair();

// The largest segment of a control connection: an IPv6 packet of it has 1280 bytes, which every
// path carries. A switch that drops what is longer must not take the connection with it: the run is
// to say so.
inline constexpr int kMaxControlSegmentBytes = 1220;

// TCP_NODELAY, keepalive and, before connect or listen, the segment size. A lost host is noticed by
// heartbeats long before; keepalive (2 s idle, then 3 probes at 1 s) covers the phases without
// them. Failures are ignored: all are refinements.
void SetTcpOptions(int fd);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_SOCKET_H_
