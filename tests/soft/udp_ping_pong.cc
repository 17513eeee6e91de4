#include "tests/soft/udp_ping_pong.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/base/file_descriptor.h"
#include "core/histogram/histogram.h"
#include "tests/soft/probe_end.h"
#include "transports/soft/device/core.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {
namespace {

class Socket {
 public:
  Socket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    if (::bind(fd_.get(), Generic(), size) != 0) Die("bind");
    if (::getsockname(fd_.get(), Generic(), &size) != 0) Die("getsockname");
  }
  void SendTo(const Socket& peer, const std::vector<std::byte>& bytes) const {
    if (::sendto(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, peer.Generic(),
                 sizeof(peer.address_)) < 0) {
      Die("sendto");
    }
  }
  // False: nothing until the deadline.
  bool Spin(std::vector<std::byte>& bytes, uint64_t deadline_ns) const {
    for (uint32_t empty = 1;; ++empty) {
      if (::recvfrom(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT, nullptr, nullptr) >= 0) {
        return true;
      }
      if (empty % 4096 == 0 && NowNs() > deadline_ns) return false;
    }
  }

 private:
  sockaddr* Generic() const { return reinterpret_cast<sockaddr*>(&address_); }
  mutable sockaddr_in address_ = {};
  FileDescriptor fd_;
};

}  // namespace

int UdpPingPong(size_t payload_bytes, uint64_t milliseconds) {
  constexpr uint64_t kGraceNs = 200'000'000;
  const Socket parent;
  const Socket child;
  std::vector<std::byte> bytes(kBthBytes + payload_bytes + kIcrcBytes);
  const uint64_t end_ns = NowNs() + milliseconds * 1'000'000;
  const pid_t process = Fork();
  Pin(process == 0 ? 1 : 0);
  if (process == 0) {
    while (child.Spin(bytes, end_ns + kGraceNs)) child.SendTo(parent, bytes);
    ::_exit(0);
  }
  Histogram histogram;
  uint64_t previous = NowNs();
  while (previous < end_ns) {
    parent.SendTo(child, bytes);
    if (!parent.Spin(bytes, end_ns + kGraceNs)) Die("the answer is lost");
    const uint64_t now = NowNs();
    histogram.Record(static_cast<int64_t>(now - previous) / 2);
    previous = now;
  }
  ::waitpid(process, nullptr, 0);
  const uint64_t rank = std::max<uint64_t>(histogram.count() / 2, 1);
  std::printf("{\"p50_ns\": %lld, \"samples\": %llu}\n",
              static_cast<long long>(histogram.ValueAtRank(rank).highest_ns),
              static_cast<unsigned long long>(histogram.count()));
  return 0;
}

}  // namespace verbscope::soft
