// Peers that come and go, die, or lie: nothing is left of them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/file_descriptor.h"
#include "transports/soft/link/link_test_support.h"
#include "transports/soft/link/memory_link.h"
#include "transports/soft/link/rendezvous_messages.h"
#include "transports/soft/link/ring_memory.h"
#include "transports/soft/link/unix_socket.h"

namespace verbscope::soft {
namespace {

size_t OpenFds() {
  const std::filesystem::directory_iterator fds("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(fds), end(fds)));
}

// Mappings of rings in this process.
size_t RingMaps() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("verbscope-ring") != std::string::npos ? 1 : 0;
  }
  return count;
}

bool WaitReadable(int fd) {
  pollfd p = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, 5000) == 1;
}

TEST(MemoryLinkLifetime, ThousandPeersComeAndGo) {
  TestPeer device;
  const FileDescriptor event(::eventfd(0, EFD_CLOEXEC));
  device.link->AddChannel(event.get());
  size_t fds = 0;
  size_t maps = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    {
      TestPeer peer;
      const PathId there = peer.ConnectTo(device);
      const PathId back = device.ConnectTo(peer);
      device.link->Serve();
      peer.link->Serve();
      ASSERT_TRUE(peer.SendAndFlush(there, SendHeader(i, 300), Pattern(300, i)));
      ASSERT_TRUE(device.SendAndFlush(back, SendHeader(i, 0)));
      ASSERT_EQ(peer.Poll(), 1U);
      // Left in different states: packets unread, path still held, ring not even served.
      if (i % 3 != 0) {
        ASSERT_EQ(device.Poll(), 1U);
      }
      if (i % 2 == 0) peer.link->Disconnect(there);
      if (i % 5 == 0) device.link->Serve();
      if (i % 7 != 0) device.link->Disconnect(back);
      if (i % 7 == 0) {
        device.link->Serve();
        device.link->Disconnect(back);
      }
    }
    device.link->Serve();
    device.link->Serve();
    device.Poll();
    EXPECT_FALSE(device.link->Pending());
    if (i == 0) fds = OpenFds();
    if (i == 0) maps = RingMaps();
  }
  EXPECT_EQ(OpenFds(), fds);
  EXPECT_EQ(RingMaps(), maps);
  EXPECT_EQ(maps, 0U);
  EXPECT_EQ(device.received.packets.size(), 1000U);
}

TEST(MemoryLinkLifetime, LinkLeavesNothing) {
  const size_t fds = OpenFds();
  {
    TestPeer a;
    TestPeer b;
    const PathId path = a.ConnectTo(b);
    b.ConnectTo(a);
    a.ConnectTo(a);
    a.link->Serve();
    b.link->Serve();
    a.SendAndFlush(path, SendHeader(1, 4096), Pattern(4096, 1));
  }
  EXPECT_EQ(OpenFds(), fds);
  EXPECT_EQ(RingMaps(), 0U);
}

// The child is a whole device in another process; it is killed in the middle of sending.
TEST(MemoryLinkLifetime, KilledPeerIsNoticed) {
  TestPeer parent;
  const size_t fds = OpenFds();
  const std::vector<std::byte> blob = parent.link->LocalBlob();
  int pipes[2];
  ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    TestPeer peer;
    const std::vector<std::byte> own = peer.link->LocalBlob();
    const PathId path = peer.ConnectTo(blob);
    if (::write(pipes[1], own.data(), own.size()) < 0) ::_exit(1);
    for (uint32_t i = 0;;) {
      peer.link->Serve();
      if (peer.SendAndFlush(path, SendHeader(i, 500), Pattern(500, i))) ++i;
    }
  }
  std::vector<std::byte> child_blob(blob.size());
  ASSERT_EQ(::read(pipes[0], child_blob.data(), child_blob.size()),
            static_cast<ssize_t>(child_blob.size()));
  ::close(pipes[0]);
  ::close(pipes[1]);
  const PathId path = parent.ConnectTo(child_blob);
  while (parent.received.packets.size() < 1000) {
    parent.link->Serve();
    parent.Poll();
  }
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  // Both connections end: that of its ring, and that of ours.
  const auto alive = [&] {
    DeviceLockHolder hold(parent.lock);
    return parent.link->Alive(path) || parent.link->Pending();
  };
  while (alive()) {
    if (!parent.link->Pending()) {
      ASSERT_TRUE(WaitReadable(parent.link->wait_fd()));
    }
    parent.link->Serve();
    parent.Poll();
  }
  parent.link->Serve();
  for (uint32_t i = 0; i < parent.received.packets.size(); ++i) {
    ASSERT_EQ(parent.received.packets[i].header.psn, i);
    ASSERT_EQ(parent.received.packets[i].payload, Pattern(500, i));
    ASSERT_EQ(parent.received.packets[i].path, path);
  }
  EXPECT_TRUE(parent.SendAndFlush(path, SendHeader(1, 0)));
  EXPECT_EQ(parent.counters.send_err, 1U);
  EXPECT_FALSE(parent.link->Connect(child_blob, TestFlow(1, 2), Soon()));
  parent.link->Disconnect(path);
  EXPECT_EQ(OpenFds(), fds);
  EXPECT_EQ(RingMaps(), 0U);
}

TEST(MemoryLinkLifetime, PeerThatWasRefusedCanComeAgain) {
  TestPeer a;
  TestPeer b;
  const PathId path = a.ConnectTo(b);
  const std::vector<std::byte> blob = b.link->LocalBlob();
  // `b` has no descriptors left for a moment, and refuses.
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const FileDescriptor next(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const rlimit none = {.rlim_cur = static_cast<rlim_t>(next.get()) + 1,
                       .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  b.link->Serve();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(b.Poll(), 0U);
  a.link->Serve();
  {
    DeviceLockHolder hold(a.lock);
    ASSERT_FALSE(a.link->Alive(path));
  }
  EXPECT_EQ(a.ConnectTo(blob), path);
  a.SendAndFlush(path, SendHeader(1, 0));
  b.link->Serve();
  EXPECT_EQ(b.Poll(), 1U);
}

// What a liar of the same user can do at the door.
class LiarAtTheDoor : public testing::Test {
 protected:
  FileDescriptor Knock() {
    const auto address = ParseBlob(device_.link->LocalBlob());
    EXPECT_TRUE(address);
    auto socket = ConnectAbstract(SocketName(address->nonce), Soon());
    EXPECT_TRUE(socket);
    return socket ? std::move(*socket) : FileDescriptor();
  }
  // Whether the device has hung up.
  static bool Refused(const FileDescriptor& socket) {
    return ReceiveRecord(socket.get()).kind == Record::Kind::kEnd;
  }
  void Serve() {
    device_.link->Serve();
    device_.link->Serve();
  }

  TestPeer device_;
  const size_t fds_ = OpenFds();
};

TEST_F(LiarAtTheDoor, SaysNothing) {
  std::vector<FileDescriptor> sockets;
  for (int i = 0; i < 100; ++i) sockets.push_back(Knock());
  for (int i = 0; i < 10; ++i) Serve();
  EXPECT_FALSE(Refused(sockets.front()));
  EXPECT_TRUE(Refused(sockets.back()));
  // Honest peers get in when the silent ones have gone.
  sockets.clear();
  for (int i = 0; i < 10; ++i) Serve();
  TestPeer peer;
  const PathId path = peer.ConnectTo(device_);
  Serve();
  peer.SendAndFlush(path, SendHeader(1, 0));
  EXPECT_EQ(device_.Poll(), 1U);
}

TEST_F(LiarAtTheDoor, SaysRubbish) {
  std::mt19937 random(7);
  const auto good = EncodeHello({.nonce = {}, .flow = TestFlow(1, 2)});
  for (int i = 0; i < 300; ++i) {
    const FileDescriptor socket = Knock();
    std::vector<std::byte> bytes = i % 2 == 0 ? Pattern(random() % 400, 7) : good;
    if (i % 4 == 1) bytes.resize(random() % bytes.size());
    int pipes[2];
    ASSERT_EQ(::pipe2(pipes, O_CLOEXEC), 0);
    const FileDescriptor in(pipes[0]);
    const FileDescriptor out(pipes[1]);
    const std::vector<int> fds(random() % 5, pipes[0]);
    SendRecord(socket.get(), bytes, fds);
    Serve();
    ASSERT_TRUE(Refused(socket)) << i;
  }
  EXPECT_EQ(OpenFds(), fds_);
}

TEST_F(LiarAtTheDoor, OffersUnsafeMemoryOrAStrangeBell) {
  const auto hello = EncodeHello({.nonce = {}, .flow = TestFlow(1, 2)});
  auto ring = MakeRing(kMinArenaBytes);
  ASSERT_TRUE(ring);
  const FileDescriptor unsealed(::memfd_create("t", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), sizeof(RingHead) + kMinArenaBytes), 0);
  const FileDescriptor event(::eventfd(0, EFD_CLOEXEC));
  const int cases[][2] = {{unsealed.get(), event.get()},         // not sealed
                          {event.get(), event.get()},            // no memory
                          {ring->memfd.get(), unsealed.get()}};  // a bell that cannot ring
  for (const auto& fds : cases) {
    const FileDescriptor socket = Knock();
    ASSERT_TRUE(SendRecord(socket.get(), hello, fds));
    Serve();
    EXPECT_TRUE(Refused(socket));
  }
  // A ring without a magic is as good as any: its words are judged one by one.
  const FileDescriptor socket = Knock();
  const int good[] = {ring->memfd.get(), event.get()};
  ASSERT_TRUE(SendRecord(socket.get(), hello, good));
  Serve();
  EXPECT_FALSE(Refused(socket));
}

TEST_F(LiarAtTheDoor, FloodsItsChannel) {
  TestPeer victim;
  const PathId path = victim.ConnectTo(device_);
  device_.link->Serve();
  const FileDescriptor event(::eventfd(0, EFD_CLOEXEC));
  const size_t before = OpenFds();
  for (int i = 0; i < 1000; ++i) {
    device_.link->AddChannel(event.get());
    victim.link->Serve();
  }
  EXPECT_LE(OpenFds(), before + PeerWaker::kMaxChannels);
  victim.link->Disconnect(path);
  device_.link->Serve();
  EXPECT_LE(OpenFds(), before);
}

TEST(MemoryLinkLifetime, ManyThreadsConnectAndServe) {
  TestPeer a;
  TestPeer b;
  std::atomic<bool> stop = false;
  std::thread helper([&] {
    while (!stop) {
      b.link->Serve();
      b.Poll();
      (void)b.link->Pending();
    }
  });
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&a, &b, t] {
      for (uint32_t i = 0; i < 300; ++i) {
        const PathId path = a.ConnectTo(b);
        a.SendAndFlush(path, SendHeader(i, 100 * t), Pattern(100 * t, i));
        a.link->Disconnect(path);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (b.link->Pending()) std::this_thread::yield();
  stop = true;
  helper.join();
  EXPECT_LE(b.received.packets.size(), 900U);
  EXPECT_EQ(b.counters.malformed_pkts, 0U);
}

}  // namespace
}  // namespace verbscope::soft
