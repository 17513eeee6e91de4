#include "transports/soft/link/memory_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "transports/soft/link/link_test_support.h"
#include "transports/soft/link/rendezvous_messages.h"
#include "transports/soft/link/unix_socket.h"

namespace verbscope::soft {
namespace {

TEST(MemoryLink, CarriesPacketsBothWaysOnOnePath) {
  TestPeer a;
  TestPeer b;
  const PathId to_b = a.ConnectTo(b);
  const auto data = Pattern(100, 1);
  ASSERT_TRUE(a.SendAndFlush(to_b, SendHeader(5, data.size()), data));
  b.link->Serve();  // the packet was there before the ring was mapped
  EXPECT_TRUE(b.link->Pending());
  ASSERT_EQ(b.Poll(), 1U);
  EXPECT_FALSE(b.link->Pending());
  EXPECT_EQ(b.received.packets[0].header.psn, 5U);
  EXPECT_EQ(b.received.packets[0].payload, data);

  const PathId to_a = b.ConnectTo(a);
  EXPECT_EQ(b.received.packets[0].path, to_a);
  ASSERT_TRUE(b.SendAndFlush(to_a, SendHeader(6, 0)));
  a.link->Serve();
  ASSERT_EQ(a.Poll(), 1U);
  EXPECT_EQ(a.received.packets[0].path, to_b);
}

TEST(MemoryLink, ConnectsToItself) {
  TestPeer a;
  const PathId path = a.ConnectTo(a);
  ASSERT_TRUE(a.SendAndFlush(path, SendHeader(1, 4096), Pattern(4096, 2)));
  a.link->Serve();
  ASSERT_EQ(a.Poll(), 1U);
  EXPECT_EQ(a.received.packets[0].path, path);
  EXPECT_EQ(a.received.packets[0].payload, Pattern(4096, 2));
}

TEST(MemoryLink, SecondConnectJoinsTheFirst) {
  TestPeer a;
  TestPeer b;
  const PathId first = a.ConnectTo(b);
  EXPECT_EQ(a.ConnectTo(b), first);
  a.link->Disconnect(first);
  EXPECT_TRUE(a.SendAndFlush(first, SendHeader(1, 0)));
  b.link->Serve();
  EXPECT_EQ(b.Poll(), 1U);
  a.link->Disconnect(first);
  EXPECT_TRUE(a.SendAndFlush(first, SendHeader(2, 0)));
  EXPECT_EQ(a.counters.send_err, 1U);
}

TEST(MemoryLink, WhatWasSentBeforeDisconnectStillArrives) {
  TestPeer a;
  TestPeer b;
  const PathId path = a.ConnectTo(b);
  b.link->Serve();
  for (uint32_t i = 0; i < 40; ++i) ASSERT_TRUE(a.SendOne(path, SendHeader(i, 0)));
  a.link->Disconnect(path);
  b.link->Serve();
  EXPECT_TRUE(b.link->Pending());
  EXPECT_EQ(b.Poll(10), 10U);
  EXPECT_EQ(b.Poll(), 30U);
  EXPECT_EQ(b.received.packets.back().header.psn, 39U);
  EXPECT_FALSE(b.link->Pending());
}

TEST(MemoryLink, PeerThatIsGoneSwallowsPackets) {
  TestPeer a;
  PathId path;
  {
    TestPeer b;
    path = a.ConnectTo(b);
    b.link->Serve();
    DeviceLockHolder hold(a.lock);
    EXPECT_TRUE(a.link->Alive(path));
  }
  a.link->Serve();
  for (uint32_t i = 0; i < 200; ++i) EXPECT_TRUE(a.SendAndFlush(path, SendHeader(i, 0)));
  EXPECT_EQ(a.counters.send_err, 200U);
  DeviceLockHolder hold(a.lock);
  EXPECT_FALSE(a.link->Alive(path));
  EXPECT_TRUE(a.link->CanSend(path));
}

TEST(MemoryLink, ConnectSaysWhyNot) {
  TestPeer a;
  const auto expect = [&a](std::vector<std::byte> blob, const std::string& text) {
    const auto path = a.link->Connect(blob, TestFlow(1, 2), Soon());
    ASSERT_FALSE(path);
    EXPECT_EQ(path.error().error_class, ErrorClass::kSetup);
    EXPECT_NE(path.error().ToText().find(text), std::string::npos) << path.error().ToText();
  };
  TestPeer b;
  const std::vector<std::byte> good = b.link->LocalBlob();
  EXPECT_LT(good.size(), kMaxBlobBytes);
  expect({}, "not that of a memory link");
  expect(std::vector<std::byte>(500), "not that of a memory link");
  auto blob = good;
  blob[4] = std::byte{9};
  expect(blob, "version 9");
  blob = good;
  blob.pop_back();
  expect(blob, "47 bytes");
  blob = good;
  blob[24] ^= std::byte{1};
  expect(blob, "another host");
  blob = good;
  blob[32] ^= std::byte{1};
  expect(blob, "another network namespace");
  blob = good;
  blob[40] ^= std::byte{1};
  expect(blob, "belongs to user");
  blob = good;
  blob[8] ^= std::byte{1};
  expect(blob, "does not answer");
}

// A peer that accepts nothing: its queue is full.
TEST(MemoryLink, ConnectEndsAtItsDeadline) {
  const LinkAddress stuck = *MakeLocalAddress();
  const auto listener = ListenAbstract(SocketName(stuck.nonce));
  ASSERT_TRUE(listener);
  ASSERT_EQ(::listen(listener->get(), /*backlog=*/0), 0);
  const auto first = ConnectAbstract(SocketName(stuck.nonce), Soon());
  ASSERT_TRUE(first);
  TestPeer a;
  const auto path = a.link->Connect(EncodeBlob(stuck), TestFlow(1, 2),
                                    Deadline::After(std::chrono::milliseconds(20)));
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().error_class, ErrorClass::kDeadline);
}

TEST(MemoryLink, RefusesMorePeersThanItHasRoomFor) {
  TestPeer device;
  std::vector<std::unique_ptr<TestPeer>> peers;
  for (size_t i = 0; i <= kMaxPaths; ++i) {
    peers.push_back(std::make_unique<TestPeer>());
    peers.back()->ConnectTo(device);
    device.link->Serve();
    peers.back()->link->Serve();
    DeviceLockHolder hold(peers.back()->lock);
    EXPECT_EQ(peers.back()->link->Alive(0), i < kMaxPaths) << i;
  }
}

TEST(MemoryLink, LimitsPeers) {
  TestPeer a;
  std::vector<std::unique_ptr<TestPeer>> peers;
  for (size_t i = 0; i < kMaxPaths; ++i) {
    peers.push_back(std::make_unique<TestPeer>());
    ASSERT_NE(a.ConnectTo(*peers.back()), kNoPath);
  }
  TestPeer last;
  const auto path = a.link->Connect(last.link->LocalBlob(), TestFlow(1, 2), Soon());
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().error_class, ErrorClass::kSetup);
  a.link->Disconnect(7);
  EXPECT_EQ(a.ConnectTo(last), 7U);
}

TEST(MemoryLink, PollIsFairAndBounded) {
  TestPeer a;
  TestPeer b;
  TestPeer c;
  const PathId from_a = a.ConnectTo(c);
  const PathId from_b = b.ConnectTo(c);
  c.link->Serve();
  for (uint32_t i = 0; i < 64; ++i) {
    ASSERT_TRUE(a.SendOne(from_a, SendHeader(i, 0)));
    ASSERT_TRUE(b.SendOne(from_b, SendHeader(1000 + i, 0)));
  }
  EXPECT_EQ(c.Poll(8), 8U);
  EXPECT_EQ(c.Poll(8), 8U);
  EXPECT_NE(c.received.packets[0].path, c.received.packets[8].path);
  EXPECT_EQ(c.Poll(), 112U);
}

TEST(MemoryLink, RawPacketsAreVerifiedByTheReceiver) {
  TestPeer a;
  TestPeer b;
  const PathId path = a.ConnectTo(b);
  b.link->Serve();
  for (const size_t bytes : {size_t{0}, size_t{3}, size_t{200}, size_t{4096}}) {
    const auto data = Pattern(bytes, 3);
    const std::span<const std::byte> pieces[] = {data};
    std::vector<std::byte> packet;
    DeviceLockHolder hold(a.lock);
    BuildTransport(*a.link->SendFlow(path), SendHeader(9, bytes), pieces, packet);
    ASSERT_TRUE(a.link->SendRaw(path, packet));
    packet[packet.size() / 2] ^= std::byte{4};
    ASSERT_TRUE(a.link->SendRaw(path, packet));
  }
  EXPECT_EQ(b.Poll(), 8U);
  ASSERT_EQ(b.received.packets.size(), 4U);
  EXPECT_EQ(b.received.packets[2].payload, Pattern(200, 3));
  EXPECT_EQ(b.received.packets[3].payload, Pattern(4096, 3));
  EXPECT_EQ(b.counters.icrc_errors, 4U);
  EXPECT_EQ(b.counters.malformed_pkts, 0U);
}

TEST(MemoryLink, KnowsTheFlowsOfBothDirections) {
  TestPeer a;
  TestPeer b;
  const auto path = a.link->Connect(b.link->LocalBlob(), TestFlow(3, 4), Soon());
  ASSERT_TRUE(path);
  b.link->Serve();
  ASSERT_TRUE(a.SendOne(*path, SendHeader(0, 0)));
  ASSERT_EQ(b.Poll(), 1U);
  DeviceLockHolder hold_a(a.lock);
  DeviceLockHolder hold_b(b.lock);
  ASSERT_NE(a.link->SendFlow(*path), nullptr);
  EXPECT_EQ(*a.link->SendFlow(*path), TestFlow(3, 4));
  EXPECT_EQ(a.link->ReceiveFlow(*path), nullptr);
  const PathId from_a = b.received.packets[0].path;
  ASSERT_NE(b.link->ReceiveFlow(from_a), nullptr);
  EXPECT_EQ(*b.link->ReceiveFlow(from_a), TestFlow(3, 4));
  EXPECT_EQ(b.link->SendFlow(from_a), nullptr);
}

}  // namespace
}  // namespace verbscope::soft
