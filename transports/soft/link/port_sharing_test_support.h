// What the tests of shared ports have in common: an address of their own, packets, and who got
// them.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_TEST_SUPPORT_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_TEST_SUPPORT_H_

#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/deadline.h"
#include "core/base/file_descriptor.h"
#include "transports/soft/link/local_address.h"
#include "transports/soft/link/port_sharing.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {

inline Deadline TestDeadline() { return Deadline::After(std::chrono::seconds(10)); }

// No other process of this host has it, unless by a chance of one in millions.
inline LocalAddress FreshLoopback() { return LoopbackCandidate(std::random_device{}()); }

inline LocalAddress Ipv6Loopback() {
  LocalAddress address;
  address.gid[15] = 1;
  return address;
}

// Moves this thread, and those it starts, to a network namespace with a loopback interface and
// nothing else: there is only one ::1 in each, and other tests may be at it. False where it must
// not; call it before any thread has started.
inline bool MoveToOwnNetwork() {
  if (::unshare(::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  return ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

// As much of a RoCE packet as the kernel's program looks at, and a mark.
using TestPacket = std::array<uint8_t, 16>;

inline TestPacket PacketFor(uint32_t qpn, uint8_t mark) {
  TestPacket packet = {};
  packet[4] = 0xff;  // FECN, BECN, reserved: no part of the QPN
  packet[5] = static_cast<uint8_t>(qpn >> 16);
  packet[6] = static_cast<uint8_t>(qpn >> 8);
  packet[7] = static_cast<uint8_t>(qpn);
  packet[15] = mark;
  return packet;
}

// From a new socket each time, so that source ports, and with them the kernel's hashes, differ.
inline FileDescriptor SendTo(const LocalAddress& address, uint32_t qpn, uint8_t mark = 0) {
  const int family = address.IsIpv4() ? AF_INET : AF_INET6;
  FileDescriptor socket(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress to = address.Socket(kRoceUdpPort);
  const TestPacket packet = PacketFor(qpn, mark);
  EXPECT_EQ(::sendto(socket.get(), packet.data(), packet.size(), 0, to.generic(), to.size),
            static_cast<ssize_t>(packet.size()));
  return socket;
}

inline std::optional<TestPacket> ReceiveNow(int fd) {
  TestPacket packet;
  if (::recv(fd, packet.data(), packet.size(), MSG_DONTWAIT) < 0) return std::nullopt;
  return packet;
}

inline bool Readable(int fd, Deadline deadline) {
  pollfd wait = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&wait, 1, deadline.PollTimeoutMs()) == 1;
}

// Members within this process. One thread serves them all.
class Sharers {
 public:
  explicit Sharers(const LocalAddress& address) : address_(address) {}

  // Joins while the others are served.
  PortSharing* Join() {
    Expected<std::unique_ptr<PortSharing>> joined;
    std::atomic<bool> done = false;
    std::thread joiner([&] {
      joined = PortSharing::Join(address_, TestDeadline());
      done = true;
    });
    EXPECT_TRUE(ServeUntil([&] { return done.load(); }));
    joiner.join();
    EXPECT_TRUE(joined) << joined.error().ToText();
    if (!joined) return nullptr;
    members.push_back(std::move(*joined));
    return members.back().get();
  }

  void Leave(size_t index) { members.erase(members.begin() + static_cast<ptrdiff_t>(index)); }

  template <class Condition>
  bool ServeUntil(Condition condition) {
    const Deadline deadline = TestDeadline();
    while (!condition()) {
      if (deadline.Passed()) return false;
      std::vector<pollfd> waits;
      for (const auto& member : members) {
        waits.push_back({.fd = member->wait_fd(), .events = POLLIN, .revents = 0});
      }
      ::poll(waits.data(), waits.size(), /*timeout=*/1);
      for (const auto& member : members) member->Serve();
    }
    return true;
  }

  // Serves until somebody is the keeper and all others know it.
  bool Settle() {
    return ServeUntil([&] {
      return members.empty() ||
             std::any_of(members.begin(), members.end(), [](const auto& m) { return m->keeper(); });
    });
  }

  // Packets for each member, from many source ports, come to it and to nobody else.
  void ExpectExactDelivery(uint8_t packets = 4) {
    for (uint8_t i = 0; i < packets; ++i) {
      for (const auto& member : members) {
        SendTo(address_, uint32_t{member->tag()} << 16 | (i * 0x1235U & 0xffff), i);
      }
    }
    for (const auto& member : members) {
      for (uint8_t i = 0; i < packets; ++i) {
        ASSERT_TRUE(Readable(member->fd(), TestDeadline())) << "tag " << int{member->tag()};
        const std::optional<TestPacket> packet = ReceiveNow(member->fd());
        ASSERT_TRUE(packet);
        EXPECT_EQ((*packet)[5], member->tag());
        EXPECT_EQ((*packet)[15], i);
      }
    }
    for (const auto& member : members) EXPECT_FALSE(ReceiveNow(member->fd()));
  }

  std::vector<std::unique_ptr<PortSharing>> members;

 private:
  const LocalAddress address_;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_PORT_SHARING_TEST_SUPPORT_H_
