// What the tests of the UDP link share: a network of their own, a device reduced to its link, and
// plain sockets that stand for other peers.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_TEST_SUPPORT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_TEST_SUPPORT_H_

#include <gtest/gtest.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/link_test_support.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/link/udp_link.h"
#include "transports/soft/wire/frame.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {

// A network namespace for this test program, with a loopback interface that nobody else uses: IPv6
// has one loopback address only, and MTUs can be set.
class OwnNetwork {
 public:
  static bool Entered() {
    static const bool entered = Enter();
    return entered;
  }
  static bool SetLoopbackMtu(int bytes) {
    ifreq request = Loopback();
    request.ifr_mtu = bytes;
    return Entered() && Control(SIOCSIFMTU, &request);
  }

 private:
  static ifreq Loopback() {
    ifreq request = {};
    std::snprintf(request.ifr_name, sizeof(request.ifr_name), "lo");
    return request;
  }
  static bool Control(unsigned long what, void* request, int family = AF_INET) {
    const FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return ::ioctl(socket.get(), what, request) == 0;
  }
  static bool Enter() {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    ifreq up = Loopback();
    up.ifr_flags = IFF_UP | IFF_LOOPBACK | IFF_RUNNING;
    if (!Control(SIOCSIFFLAGS, &up)) return false;
    // fd00::1 … fd00::9, so that two links have one each.
    for (uint8_t last = 1; last < 10; ++last) {
      in6_ifreq add = {};
      add.ifr6_addr.s6_addr[0] = 0xfd;
      add.ifr6_addr.s6_addr[15] = last;
      add.ifr6_prefixlen = 128;
      add.ifr6_ifindex = static_cast<int>(::if_nametoindex("lo"));
      if (!Control(SIOCSIFADDR, &add, AF_INET6)) return false;
    }
    // The kernel lets them be used a moment later.
    LocalAddress last;
    last.gid[0] = 0xfd;
    last.gid[15] = 9;
    const Deadline deadline = Soon();
    while (!BindAlone(last)) {
      if (deadline.Passed()) return false;
      ::sched_yield();
    }
    return true;
  }
};

// Before the first test and any thread. True: in the own network.
inline const bool kInOwnNetwork = OwnNetwork::Entered();

// IPv4 addresses are this process's even where there is no network of its own.
inline LocalAddress TestAddress(bool ipv4, uint8_t last) {
  const auto process = static_cast<uint32_t>(::getpid());
  if (ipv4) {
    return LocalAddress::Ipv4(127, static_cast<uint8_t>(64 + process / 256 % 128),
                              static_cast<uint8_t>(process % 256), last);
  }
  LocalAddress address;
  address.gid[0] = 0xfd;
  address.gid[15] = last;
  return address;
}

// Whether the tests of an address family can run here.
#define REQUIRE_ADDRESSES(ipv4)                                                         \
  if (!(ipv4) && !kInOwnNetwork) {                                                      \
    GTEST_SKIP() << "no own network namespace, and IPv6 has one loopback address only"; \
  }

inline Flow FlowBetween(const LocalAddress& from, const LocalAddress& to, uint16_t port = 0xc111) {
  Flow flow;
  flow.source = from.gid;
  flow.destination = to.gid;
  flow.source_port = port;
  return flow;
}

// A device reduced to its link. The functions take the lock.
class UdpPeer {
 public:
  explicit UdpPeer(const LocalAddress& at, UdpGso gso = UdpGso::kAuto)
      : UdpPeer(std::vector{at}, gso, UdpOptions().buffer_bytes) {}
  UdpPeer(const std::vector<LocalAddress>& all, UdpGso gso, size_t buffer_bytes)
      : address(all.front()) {
    UdpOptions options;
    for (const LocalAddress& at : all) options.locals.push_back({.address = at, .socket = {}});
    options.gso = gso;
    options.buffer_bytes = buffer_bytes;
    auto made = UdpLink::Create(std::move(options), lock, counters);
    EXPECT_TRUE(made) << made.error().ToText();
    if (made) link = std::move(*made);
  }

  PathId ConnectTo(const UdpPeer& peer, uint32_t qpn = kAnyQpn, uint16_t port = 0xc111) {
    return Connect(peer.link->LocalBlob(), FlowBetween(address, peer.address, port), qpn);
  }
  // A peer that is no soft device.
  PathId ConnectTo(const LocalAddress& peer, uint16_t port = 0xc111) {
    return Connect({}, FlowBetween(address, peer, port), kAnyQpn);
  }
  PathId Connect(std::span<const std::byte> blob, const Flow& flow, uint32_t qpn) {
    const auto path = link->Connect(blob, flow, Soon(), qpn);
    EXPECT_TRUE(path) << path.error().ToText();
    return path ? *path : kNoPath;
  }
  bool SendOne(PathId path, const Header& header, std::span<const std::byte> payload = {}) {
    const std::span<const std::byte> pieces[] = {payload};
    DeviceLockHolder hold(lock);
    return link->Send(path, header, pieces);
  }
  bool SendRaw(PathId path, std::span<const std::byte> packet) {
    DeviceLockHolder hold(lock);
    return link->SendRaw(path, packet);
  }
  void Flush() {
    DeviceLockHolder hold(lock);
    link->Flush();
  }
  bool SendAndFlush(PathId path, const Header& header, std::span<const std::byte> payload = {}) {
    const bool sent = SendOne(path, header, payload);
    Flush();
    return sent;
  }
  size_t Poll(size_t budget = 1000) {
    DeviceLockHolder hold(lock);
    return link->Poll(received, budget);
  }
  // Polls until the condition holds, or for five seconds.
  template <class F>
  bool PollUntil(F&& condition) {
    const Deadline deadline = Soon();
    while (!condition()) {
      if (deadline.Passed()) return false;
      Poll();
    }
    return true;
  }
  bool PollFor(size_t packets) {
    return PollUntil([&] { return received.packets.size() >= packets; });
  }

  // A crowd of packets, after which the kernel merges those of a burst.
  void StartMerging(UdpPeer& from, PathId path) {
    constexpr uint32_t kCrowd = 20;
    for (uint32_t i = 0; i < kCrowd; ++i) from.SendAndFlush(path, SendHeader(i, 0));
    EXPECT_TRUE(PollFor(kCrowd));
    received.packets.clear();
  }

  LocalAddress address;
  MutexLock lock;
  Counters counters;
  RecordingReceiver received;
  std::unique_ptr<UdpLink> link;
};

struct PlainDatagram {
  std::vector<std::byte> bytes;
  uint16_t source_port = 0;
  int traffic_class = -1;
  int hop_limit = -1;
  uint32_t flow_label = 0;
};

// A UDP socket that knows nothing of RoCE.
class PlainSocket {
 public:
  PlainSocket(const LocalAddress& at, uint16_t port)
      : address(at), fd(::socket(at.IsIpv4() ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    if (at.IsIpv4()) {
      ::setsockopt(fd.get(), IPPROTO_IP, IP_RECVTOS, &on, sizeof(on));
      ::setsockopt(fd.get(), IPPROTO_IP, IP_RECVTTL, &on, sizeof(on));
    } else {
      ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof(on));
      ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on));
      ::setsockopt(fd.get(), IPPROTO_IPV6, kFlowInfo, &on, sizeof(on));
    }
    const int buffer = 4 << 20;
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    const SocketAddress to = at.Socket(port);
    EXPECT_EQ(::bind(fd.get(), to.generic(), to.size), 0) << at.ToText() << " " << strerror(errno);
  }

  void SendTo(const LocalAddress& peer, std::span<const std::byte> bytes) {
    const SocketAddress to = peer.Socket(kRoceUdpPort);
    EXPECT_EQ(::sendto(fd.get(), bytes.data(), bytes.size(), 0, to.generic(), to.size),
              static_cast<ssize_t>(bytes.size()))
        << strerror(errno);
  }

  // The next datagram, within five seconds.
  std::optional<PlainDatagram> Receive() {
    pollfd waiting = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, Soon().PollTimeoutMs()) != 1) return std::nullopt;
    return ReceiveNow();
  }
  // What is there already.
  std::vector<PlainDatagram> ReceiveAll() {
    std::vector<PlainDatagram> all;
    while (auto next = ReceiveNow()) all.push_back(std::move(*next));
    return all;
  }

  LocalAddress address;
  FileDescriptor fd;

 private:
  static constexpr int kFlowInfo = 11;  // IPV6_FLOWINFO

  std::optional<PlainDatagram> ReceiveNow() {
    PlainDatagram datagram;
    datagram.bytes.resize(65536);
    sockaddr_storage from = {};
    alignas(cmsghdr) std::array<char, 256> control;
    iovec part = {.iov_base = datagram.bytes.data(), .iov_len = datagram.bytes.size()};
    msghdr message = {};
    message.msg_name = &from;
    message.msg_namelen = sizeof(from);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd.get(), &message, MSG_DONTWAIT);
    if (got < 0) return std::nullopt;
    datagram.bytes.resize(static_cast<size_t>(got));
    std::memcpy(&datagram.source_port, reinterpret_cast<char*>(&from) + 2, 2);
    datagram.source_port = ntohs(datagram.source_port);
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      uint32_t value = 0;
      std::memcpy(&value, CMSG_DATA(c), std::min(sizeof(value), c->cmsg_len - CMSG_LEN(0)));
      if (c->cmsg_type == IP_TOS || c->cmsg_type == IPV6_TCLASS) {
        datagram.traffic_class = static_cast<int>(value & 0xff);
      } else if (c->cmsg_type == IP_TTL || c->cmsg_type == IPV6_HOPLIMIT) {
        datagram.hop_limit = static_cast<int>(value);
      } else if (c->cmsg_type == kFlowInfo) {
        datagram.flow_label = ntohl(value) & 0xfffff;
      }
    }
    return datagram;
  }
};

// Packets as bytes, BTH … ICRC.
inline std::vector<std::byte> PacketBytes(const Flow& flow, const Header& header,
                                          std::span<const std::byte> payload, uint16_t id = 0) {
  const std::span<const std::byte> pieces[] = {payload};
  std::vector<std::byte> bytes;
  BuildTransport(flow, header, pieces, bytes, id);
  return bytes;
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_UDP_TEST_SUPPORT_H_
