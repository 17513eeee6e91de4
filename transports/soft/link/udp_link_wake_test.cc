// What a poller and a sleeper see of a UDP link: budgets, merged bursts, when to look, what wakes.
#include <gtest/gtest.h>
#include <poll.h>

#include "transports/soft/link/udp_test_support.h"

namespace verbscope::soft {
namespace {

bool Readable(int fd) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) == 1;
}

// On both address families.
class UdpLinkWakeTest : public testing::TestWithParam<bool> {
 protected:
  LocalAddress Address(uint8_t last) const { return TestAddress(GetParam(), last); }
};

INSTANTIATE_TEST_SUITE_P(Families, UdpLinkWakeTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "IPv4" : "IPv6"; });

TEST_P(UdpLinkWakeTest, PollKeepsTheBudgetAndTheRest) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b);
  b.ConnectTo(a);
  b.StartMerging(a, to_b);
  for (uint32_t i = 0; i < 20; ++i) a.SendOne(to_b, SendHeader(i, 64), Pattern(64, i));
  a.Flush();
  ASSERT_EQ(a.link->counts().bursts, 1U);
  ASSERT_TRUE(b.PollUntil([&] { return b.Poll(3) == 3; }));
  EXPECT_EQ(b.received.packets.size() % 20, 3U);
  EXPECT_TRUE(b.link->Kept());
  EXPECT_TRUE(b.link->Pending());
  {
    DeviceLockHolder hold(b.lock);
    EXPECT_FALSE(b.link->PrepareSleep());
  }
  EXPECT_EQ(b.Poll(1000), 17U);
  EXPECT_FALSE(b.link->Kept());
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(b.received.packets[i].header.psn, i);
}

// A socket that is no longer looked at is as it was: the next run pays for no merging of this
// one's.
TEST_P(UdpLinkWakeTest, MergingEndsWithTheLastPath) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b);
  PathId from_a = b.ConnectTo(a);
  b.StartMerging(a, to_b);
  b.link->Disconnect(from_a);
  from_a = b.ConnectTo(a);
  EXPECT_EQ(b.Poll(), 0U);
  for (uint32_t i = 0; i < 6; ++i) a.SendOne(to_b, SendHeader(i, 64), Pattern(64, i));
  a.Flush();
  ASSERT_TRUE(b.PollUntil([&] { return b.Poll(1) != 0; }));
  EXPECT_FALSE(b.link->Kept()) << "a look for one datagram brought several packets";
  EXPECT_TRUE(b.PollFor(6));
}

// Bursts come merged while there are many packets, and apart when there are few: no packet pays for
// what does not happen.
TEST_P(UdpLinkWakeTest, BurstsAreMergedWhileThereAreCrowds) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b);
  b.ConnectTo(a);
  // Of a burst of six, those that the first call brings.
  const auto at_once = [&] {
    EXPECT_EQ(b.Poll(), 0U);  // after which a call asks for one datagram
    b.received.packets.clear();
    for (uint32_t i = 0; i < 6; ++i) a.SendOne(to_b, SendHeader(i, 64), Pattern(64, i));
    a.Flush();
    EXPECT_TRUE(b.PollUntil([&] { return b.Poll(1) != 0; }));
    while (b.link->Kept()) b.Poll();
    const size_t count = b.received.packets.size();
    EXPECT_TRUE(b.PollFor(6));
    return count;
  };
  EXPECT_LT(at_once(), 6U);
  b.StartMerging(a, to_b);
  EXPECT_EQ(at_once(), 6U);
  for (uint32_t i = 0; i < 3000; ++i) {
    b.received.packets.clear();
    a.SendAndFlush(to_b, SendHeader(i, 64), Pattern(64, i));
    ASSERT_TRUE(b.PollFor(1));
  }
  EXPECT_LT(at_once(), 6U);
}

TEST_P(UdpLinkWakeTest, WaitFdTellsOfPacketsWhileAsleepOnly) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b);
  b.ConnectTo(a);
  a.SendAndFlush(to_b, SendHeader(1, 0));
  EXPECT_FALSE(Readable(b.link->wait_fd()));  // a poller is there for that
  {
    DeviceLockHolder hold(b.lock);
    ASSERT_TRUE(b.link->PrepareSleep());
  }
  EXPECT_TRUE(Readable(b.link->wait_fd()));  // what came before counts
  ASSERT_TRUE(b.PollFor(1));
  EXPECT_FALSE(Readable(b.link->wait_fd()));
  a.SendAndFlush(to_b, SendHeader(2, 0));
  EXPECT_TRUE(Readable(b.link->wait_fd()));
  {
    DeviceLockHolder hold(b.lock);
    b.link->Awake();
  }
  EXPECT_FALSE(Readable(b.link->wait_fd()));
  EXPECT_TRUE(b.PollFor(2));
}

TEST_P(UdpLinkWakeTest, PathMadeWhileAsleepWakes) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b);
  {
    DeviceLockHolder hold(b.lock);
    ASSERT_TRUE(b.link->PrepareSleep());
  }
  a.SendAndFlush(to_b, SendHeader(1, 0));
  EXPECT_FALSE(Readable(b.link->wait_fd()));  // of no use to anybody yet
  const PathId from_a = b.ConnectTo(a);
  EXPECT_TRUE(Readable(b.link->wait_fd()));
  b.link->Disconnect(from_a);
  EXPECT_FALSE(Readable(b.link->wait_fd()));
  DeviceLockHolder hold(b.lock);
  b.link->Awake();
}

TEST_P(UdpLinkWakeTest, PendingIsNoOnceAfterALookThatFoundNothing) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  EXPECT_FALSE(b.link->Pending());  // nothing is connected
  const PathId to_b = a.ConnectTo(b);
  const PathId from_a = b.ConnectTo(a);
  EXPECT_TRUE(b.link->Pending());
  EXPECT_TRUE(b.link->Pending());
  EXPECT_EQ(b.Poll(), 0U);
  EXPECT_FALSE(b.link->Pending());
  EXPECT_TRUE(b.link->Pending());
  a.SendAndFlush(to_b, SendHeader(1, 0));
  ASSERT_TRUE(b.PollFor(1));
  EXPECT_TRUE(b.link->Pending());  // there may be more
  // What has been taken from the socket is looked at even when the last path has gone.
  b.StartMerging(a, to_b);
  const size_t before = b.received.packets.size();
  for (uint32_t i = 0; i < 5; ++i) a.SendOne(to_b, SendHeader(i, 0));
  a.Flush();
  ASSERT_TRUE(b.PollUntil([&] { return b.Poll(2) != 0; }));
  const size_t rest = before + 5 - b.received.packets.size();
  b.link->Disconnect(from_a);
  EXPECT_EQ(b.link->Pending(), rest > 0);
  b.Poll();
  EXPECT_EQ(b.link->counts().unknown_source, rest);
  b.Poll();
  EXPECT_FALSE(b.link->Pending());
  EXPECT_FALSE(b.link->Pending());
}

}  // namespace
}  // namespace verbscope::soft
