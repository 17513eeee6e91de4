// Who is woken by what: bells, completion channels, and no wake-up lost.
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <thread>

#include "core/base/file_descriptor.h"
#include "transports/soft/link/link_test_support.h"
#include "transports/soft/link/memory_link.h"

namespace verbscope::soft {
namespace {

bool Readable(int fd, int timeout_ms = 0) {
  pollfd p = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&p, 1, timeout_ms) == 1;
}

// A completion channel of a device.
class TestChannel {
 public:
  explicit TestChannel(MemoryLink& link)
      : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), id_(link.AddChannel(event_.get())) {}

  // Events since the last call.
  uint64_t Take() {
    eventfd_t value = 0;
    return ::eventfd_read(event_.get(), &value) == 0 ? value : 0;
  }
  int fd() const { return event_.get(); }
  uint32_t id() const { return id_; }

 private:
  FileDescriptor event_;
  uint32_t id_;
};

// `a` sends to `b`, both know each other.
class MemoryLinkWake : public testing::Test {
 protected:
  MemoryLinkWake() : path_(a_.ConnectTo(b_)), back_(b_.ConnectTo(a_)) {
    b_.link->Serve();
    a_.link->Serve();
  }

  bool PrepareSleep() {
    DeviceLockHolder hold(b_.lock);
    return b_.link->PrepareSleep();
  }
  void Awake() {
    DeviceLockHolder hold(b_.lock);
    b_.link->Awake();
  }
  void Arm(uint32_t qpn, ArmSide side, uint32_t channel, bool solicited_only = false) {
    DeviceLockHolder hold(b_.lock);
    b_.link->Arm(back_, qpn, side, channel, solicited_only);
  }
  Header Packet(Opcode opcode, uint32_t qpn = 17) {
    Header header = SendHeader(1, 0, qpn);
    header.opcode = opcode;
    return header;
  }

  TestPeer a_;
  TestPeer b_;
  PathId path_;
  PathId back_;
};

TEST_F(MemoryLinkWake, BellWakesASleeperOnce) {
  ASSERT_TRUE(PrepareSleep());
  EXPECT_FALSE(Readable(b_.link->wait_fd()));
  a_.SendAndFlush(path_, SendHeader(1, 0));
  EXPECT_TRUE(Readable(b_.link->wait_fd()));
  EXPECT_EQ(a_.link->wakes().bells, 1U);
  a_.SendAndFlush(path_, SendHeader(2, 0));
  EXPECT_EQ(a_.link->wakes().bells, 1U);
  b_.link->Serve();
  EXPECT_FALSE(Readable(b_.link->wait_fd()));
  Awake();
  EXPECT_EQ(b_.Poll(), 2U);
  ASSERT_TRUE(PrepareSleep());
  a_.SendAndFlush(path_, SendHeader(3, 0));
  EXPECT_EQ(a_.link->wakes().bells, 2U);
}

TEST_F(MemoryLinkWake, NobodySleepsOnWaitingPackets) {
  a_.SendAndFlush(path_, SendHeader(1, 0));
  EXPECT_FALSE(PrepareSleep());
  a_.SendAndFlush(path_, SendHeader(2, 0));
  EXPECT_EQ(a_.link->wakes().bells, 0U);  // nothing was left set
}

TEST_F(MemoryLinkWake, AwakeReceiversCostNoCall) {
  ASSERT_TRUE(PrepareSleep());
  Awake();
  for (uint32_t i = 0; i < 10; ++i) a_.SendAndFlush(path_, SendHeader(i, 0));
  EXPECT_EQ(a_.link->wakes().bells, 0U);
}

TEST_F(MemoryLinkWake, BellIsSetForPeersThatComeWhileAsleep) {
  ASSERT_TRUE(PrepareSleep());
  TestPeer c;
  const PathId path = c.ConnectTo(b_);
  EXPECT_TRUE(Readable(b_.link->wait_fd()));
  b_.link->Serve();
  c.SendAndFlush(path, SendHeader(1, 0));
  EXPECT_EQ(c.link->wakes().bells, 1U);
}

TEST_F(MemoryLinkWake, ChannelIsWrittenOncePerArming) {
  TestChannel channel(*b_.link);
  a_.link->Serve();  // learns of it
  Arm(17, ArmSide::kReceive, channel.id());
  for (uint32_t i = 0; i < 3; ++i) a_.SendAndFlush(path_, SendHeader(i, 0));
  EXPECT_EQ(channel.Take(), 1U);
  EXPECT_EQ(a_.link->wakes().channels, 1U);
  a_.SendAndFlush(path_, SendHeader(4, 0));
  EXPECT_EQ(channel.Take(), 0U);
  Arm(17, ArmSide::kReceive, channel.id());
  Arm(17, ArmSide::kReceive, channel.id());  // arming twice is arming once
  for (uint32_t i = 0; i < 3; ++i) a_.SendOne(path_, SendHeader(i, 0));
  a_.Flush();
  EXPECT_EQ(channel.Take(), 1U);
  DeviceLockHolder hold(b_.lock);
  EXPECT_EQ(b_.link->wakes().channels, 0U);
}

TEST_F(MemoryLinkWake, DisarmWithdraws) {
  TestChannel channel(*b_.link);
  a_.link->Serve();
  Arm(17, ArmSide::kReceive, channel.id());
  {
    DeviceLockHolder hold(b_.lock);
    b_.link->Disarm(back_, 17, ArmSide::kReceive);
  }
  a_.SendAndFlush(path_, SendHeader(1, 0));
  EXPECT_EQ(channel.Take(), 0U);
}

TEST_F(MemoryLinkWake, SolicitedOnlyNeedsTheBit) {
  TestChannel channel(*b_.link);
  a_.link->Serve();
  Arm(17, ArmSide::kReceive, channel.id(), /*solicited_only=*/true);
  ASSERT_TRUE(PrepareSleep());
  a_.SendAndFlush(path_, SendHeader(1, 0));
  EXPECT_EQ(channel.Take(), 0U);
  EXPECT_EQ(a_.link->wakes().bells, 1U);  // somebody has to take it
  Header header = SendHeader(2, 0);
  header.solicited = true;
  a_.SendAndFlush(path_, header);
  EXPECT_EQ(channel.Take(), 1U);
}

TEST_F(MemoryLinkWake, OnlyPacketsThatCanCompleteHitAnArm) {
  struct Case {
    Opcode opcode;
    bool receive;
    bool send;
  };
  constexpr Case kCases[] = {
      {Opcode::kSendFirst, false, false},
      {Opcode::kSendMiddle, false, false},
      {Opcode::kSendLast, true, false},
      {Opcode::kSendLastImm, true, false},
      {Opcode::kSendOnly, true, false},
      {Opcode::kSendOnlyImm, true, false},
      {Opcode::kSendOnlyInvalidate, true, false},
      {Opcode::kWriteFirst, false, false},
      {Opcode::kWriteLast, false, false},
      {Opcode::kWriteOnly, false, false},
      {Opcode::kWriteOnlyImm, true, false},
      {Opcode::kWriteLastImm, true, false},
      {Opcode::kReadRequest, false, false},
      {Opcode::kFetchAdd, false, false},
      {Opcode::kReadResponseFirst, false, false},
      {Opcode::kReadResponseMiddle, false, false},
      {Opcode::kReadResponseLast, false, true},
      {Opcode::kReadResponseOnly, false, true},
      {Opcode::kAck, false, true},
      {Opcode::kAtomicAck, false, true},
  };
  TestChannel receive(*b_.link);
  TestChannel send(*b_.link);
  a_.link->Serve();
  for (const Case& c : kCases) {
    Arm(17, ArmSide::kReceive, receive.id());
    Arm(17, ArmSide::kSend, send.id());
    a_.SendAndFlush(path_, Packet(c.opcode, 18));  // of another QP
    EXPECT_EQ(receive.Take() + send.Take(), 0U) << Info(c.opcode).name;
    a_.SendAndFlush(path_, Packet(c.opcode));
    EXPECT_EQ(receive.Take(), c.receive ? 1U : 0U) << Info(c.opcode).name;
    EXPECT_EQ(send.Take(), c.send ? 1U : 0U) << Info(c.opcode).name;
    b_.Poll();
  }
}

TEST_F(MemoryLinkWake, WhatAChannelCoversRingsNoBell) {
  TestChannel channel(*b_.link);
  a_.link->Serve();
  Arm(17, ArmSide::kReceive, channel.id());
  ASSERT_TRUE(PrepareSleep());
  a_.SendOne(path_, Packet(Opcode::kSendFirst));
  a_.SendOne(path_, Packet(Opcode::kSendLast));
  a_.SendOne(path_, Packet(Opcode::kSendOnly));
  a_.Flush();
  EXPECT_EQ(channel.Take(), 1U);
  EXPECT_EQ(a_.link->wakes().bells, 0U);
  // A READ wants to be served, whatever the application does with its event.
  Arm(17, ArmSide::kReceive, channel.id());
  a_.SendOne(path_, Packet(Opcode::kSendOnly));
  a_.SendOne(path_, Packet(Opcode::kReadRequest));
  a_.Flush();
  EXPECT_EQ(channel.Take(), 1U);
  EXPECT_EQ(a_.link->wakes().bells, 1U);
}

TEST_F(MemoryLinkWake, UnknownChannelFallsBackToTheBell) {
  TestChannel channel(*b_.link);  // and `a` does not look
  Arm(17, ArmSide::kReceive, channel.id());
  a_.SendAndFlush(path_, SendHeader(1, 0));
  EXPECT_EQ(channel.Take(), 0U);
  EXPECT_EQ(a_.link->wakes().unknown_channels, 1U);
  EXPECT_TRUE(Readable(b_.link->wait_fd()));
}

TEST_F(MemoryLinkWake, RemovedChannelIsForgotten) {
  TestChannel channel(*b_.link);
  a_.link->Serve();
  b_.link->RemoveChannel(channel.id());
  a_.link->Serve();
  Arm(17, ArmSide::kReceive, channel.id());
  a_.SendAndFlush(path_, SendHeader(1, 0));
  EXPECT_EQ(channel.Take(), 0U);
  EXPECT_EQ(a_.link->wakes().unknown_channels, 1U);
}

TEST_F(MemoryLinkWake, NewPeersLearnOfOldChannels) {
  TestChannel first(*b_.link);
  TestChannel second(*b_.link);
  TestPeer c;
  const PathId path = c.ConnectTo(b_);
  const PathId back = b_.ConnectTo(c);
  b_.link->Serve();
  c.link->Serve();
  {
    DeviceLockHolder hold(b_.lock);
    b_.link->Arm(back, 40, ArmSide::kReceive, second.id(), /*solicited_only=*/false);
  }
  c.SendAndFlush(path, SendHeader(1, 0, 40));
  EXPECT_EQ(first.Take(), 0U);
  EXPECT_EQ(second.Take(), 1U);
}

TEST(MemoryLinkArm, SurvivesTheComingAndGoingOfRings) {
  TestPeer a;
  TestPeer b;
  TestChannel channel(*b.link);
  const PathId back = b.ConnectTo(a);
  const auto arm = [&](uint32_t qpn) {
    DeviceLockHolder hold(b.lock);
    b.link->Arm(back, qpn, ArmSide::kReceive, channel.id(), /*solicited_only=*/false);
  };
  arm(1030);  // the same arm as 6; there is no ring yet
  arm(7);
  PathId path = a.ConnectTo(b);
  b.link->Serve();
  a.link->Serve();
  a.SendAndFlush(path, SendHeader(1, 0, 6));
  EXPECT_EQ(channel.Take(), 1U);
  b.Poll();
  // The ring goes; 7 is still armed, on the next ring too.
  a.link->Disconnect(path);
  b.link->Serve();
  path = a.ConnectTo(b);
  b.link->Serve();
  a.link->Serve();
  a.SendAndFlush(path, SendHeader(1, 0, 6));
  EXPECT_EQ(channel.Take(), 0U);
  a.SendAndFlush(path, SendHeader(1, 0, 7));
  EXPECT_EQ(channel.Take(), 1U);
  // Armed on the old ring, when the new one is already on its way.
  a.link->Disconnect(path);
  path = a.ConnectTo(b);
  arm(8);
  b.link->Serve();
  a.link->Serve();
  a.SendAndFlush(path, SendHeader(1, 0, 8));
  EXPECT_EQ(channel.Take(), 1U);
}

// Two threads that meet need two processors, if there are two.
void Pin(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu % std::max(1U, std::thread::hardware_concurrency()), &set);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(set), &set);
}

// A random moment: packets and preparations for sleep meet in every order.
void Dawdle(std::mt19937& random, uint32_t longest) {
  const auto turns = random() % longest;
  for (volatile unsigned i = 0; i < turns;) i = i + 1;
}

// Spins for a while, because the other thread is quick if it has a processor.
template <class F>
void WaitUntil(F&& done) {
  for (uint32_t turn = 0; !done(); ++turn) {
    if (turn > 10000) std::this_thread::yield();
  }
}

constexpr uint32_t kRounds = 100000;
constexpr int kLost_ms = 5000;

TEST_F(MemoryLinkWake, NoBellIsLost) {
  std::atomic<uint32_t> taken = 0;
  std::atomic<bool> lost = false;
  std::thread sleeper([&] {
    Pin(1);
    std::mt19937 random(3);
    while (taken < kRounds && !lost) {
      taken += static_cast<uint32_t>(b_.Poll());
      Dawdle(random, 2000);
      if (taken == kRounds || !PrepareSleep()) continue;
      if (!Readable(b_.link->wait_fd(), kLost_ms)) lost = true;
      b_.link->Serve();
      Awake();
    }
  });
  Pin(0);
  std::mt19937 random(1);
  for (uint32_t i = 0; i < kRounds && !lost; ++i) {
    Dawdle(random, 1000);
    ASSERT_TRUE(a_.SendAndFlush(path_, SendHeader(i, 0)));
    WaitUntil([&] { return taken > i || lost; });
  }
  sleeper.join();
  EXPECT_FALSE(lost);
  EXPECT_EQ(taken, kRounds);
  EXPECT_GT(a_.link->wakes().bells, 0U);
}

TEST_F(MemoryLinkWake, NoEventIsLost) {
  TestChannel channel(*b_.link);
  a_.link->Serve();
  std::atomic<uint32_t> taken = 0;
  std::atomic<bool> lost = false;
  std::thread application([&] {
    Pin(1);
    std::mt19937 random(4);
    while (taken < kRounds && !lost) {
      taken += static_cast<uint32_t>(b_.Poll());
      if (taken == kRounds) break;
      Dawdle(random, 2000);
      Arm(17, ArmSide::kReceive, channel.id());
      if (b_.link->Pending()) continue;
      if (!Readable(channel.fd(), kLost_ms)) lost = true;
      channel.Take();
    }
  });
  Pin(0);
  std::mt19937 random(2);
  for (uint32_t i = 0; i < kRounds && !lost; ++i) {
    Dawdle(random, 1000);
    ASSERT_TRUE(a_.SendAndFlush(path_, SendHeader(i, 0)));
    WaitUntil([&] { return taken > i || lost; });
  }
  application.join();
  EXPECT_FALSE(lost);
  EXPECT_EQ(taken, kRounds);
  EXPECT_GT(a_.link->wakes().channels, 0U);
}

}  // namespace
}  // namespace verbscope::soft
