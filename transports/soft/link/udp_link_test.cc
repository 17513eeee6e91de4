// Packets between two UDP links, and what a link says of itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "transports/soft/link/udp_test_support.h"
#include "transports/soft/wire/opcode.h"

namespace verbscope::soft {
namespace {

std::vector<std::byte> Encoded(const Header& header) {
  std::array<std::byte, kMaxHeaderBytes> bytes;
  const size_t size = Encode(header, bytes.data());
  return {bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)};
}

size_t PayloadOf(Opcode opcode) {
  if (Info(opcode).payload == PayloadRule::kNone) return 0;
  return Info(opcode).payload == PayloadRule::kFull ? 256 : 37;
}

// All fields that an opcode may have, none of them 0.
Header FullHeader(Opcode opcode) {
  Header header;
  header.opcode = opcode;
  header.solicited = header.ack_request = true;
  header.pad = PadFor(PayloadOf(opcode));
  header.pkey = 0x7fff;
  header.dest_qpn = 0x123456;
  header.psn = 0xfedc00U + static_cast<uint32_t>(opcode);
  header.syndrome = 0x1f;
  header.msn = 0xabcdef;
  header.address = 0x0123456789abcdef;
  header.rkey = 0x5a5a1234;
  header.dma_length = 0x10203;
  header.swap_add = 0xfedcba9876543210;
  header.compare = 0x1122334455667788;
  header.original = 0x8877665544332211;
  header.immediate = 0xcafe1234;
  header.invalidate_rkey = 0x98761234;
  return header;
}

// On both address families.
class UdpLinkTest : public testing::TestWithParam<bool> {
 protected:
  LocalAddress Address(uint8_t last) const { return TestAddress(GetParam(), last); }
};

INSTANTIATE_TEST_SUITE_P(Families, UdpLinkTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "IPv4" : "IPv6"; });

TEST_P(UdpLinkTest, EveryHeaderArrivesAsItWasSent) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b);
  const PathId from_a = b.ConnectTo(a);
  std::vector<Header> sent;
  for (size_t opcode = 0; opcode < kOpcodeTable.size(); ++opcode) {
    if (!kOpcodeTable[opcode].valid()) continue;
    sent.push_back(FullHeader(static_cast<Opcode>(opcode)));
    const auto payload = Pattern(PayloadOf(sent.back().opcode), sent.back().psn);
    ASSERT_TRUE(a.SendOne(to_b, sent.back(), payload));
  }
  a.Flush();
  ASSERT_GE(sent.size(), 23U);
  ASSERT_TRUE(b.PollFor(sent.size()));
  for (size_t i = 0; i < sent.size(); ++i) {
    const ReceivedPacket& got = b.received.packets[i];
    EXPECT_EQ(got.path, from_a);
    EXPECT_EQ(Encoded(got.header), Encoded(sent[i])) << Info(sent[i].opcode).name;
    EXPECT_EQ(got.payload, Pattern(PayloadOf(sent[i].opcode), sent[i].psn));
  }
  EXPECT_EQ(b.link->proof(from_a), IcrcProof::kFull);
  EXPECT_EQ(b.counters.icrc_errors + b.counters.malformed_pkts, 0U);
  EXPECT_EQ(a.counters.send_err, 0U);
}

TEST_P(UdpLinkTest, PayloadsOfAllSizesArrive) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b);
  b.ConnectTo(a);
  const std::vector<size_t> sizes = {0,   1,   2,    3,    4,    5,    63,   64,  65,
                                     255, 256, 1000, 1024, 2048, 4093, 4095, 4096};
  for (const size_t size : sizes) {
    a.SendOne(to_b, SendHeader(static_cast<uint32_t>(size), size), Pattern(size, 7));
  }
  a.Flush();
  ASSERT_TRUE(b.PollFor(sizes.size()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(b.received.packets[i].header.psn, sizes[i]);
    EXPECT_EQ(b.received.packets[i].payload, Pattern(sizes[i], 7)) << sizes[i];
  }
}

TEST_P(UdpLinkTest, PiecesAreJoined) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b);
  b.ConnectTo(a);
  const auto data = Pattern(1001, 3);
  const std::span<const std::byte> all(data);
  const std::span<const std::byte> pieces[] = {
      all.first(1), {}, all.subspan(1, 700), all.subspan(701)};
  {
    DeviceLockHolder hold(a.lock);
    ASSERT_TRUE(a.link->Send(to_b, SendHeader(1, data.size()), pieces));
    a.link->Flush();
  }
  ASSERT_TRUE(b.PollFor(1));
  EXPECT_EQ(b.received.packets[0].payload, data);
}

// What a requester may have in flight fits the receive buffer.
TEST_P(UdpLinkTest, WholeWindowArrives) {
  REQUIRE_ADDRESSES(GetParam());
  for (const UdpGso gso : {UdpGso::kAuto, UdpGso::kOff}) {
    UdpPeer a(Address(1), gso), b(Address(2));
    const PathId to_b = a.ConnectTo(b);
    const PathId from_a = b.ConnectTo(a);
    if (b.link->receive_buffer_bytes() < (size_t{3} << 20)) {
      GTEST_SKIP() << "receive buffer of " << b.link->receive_buffer_bytes() << " bytes";
    }
    constexpr uint32_t kWindow = 128;
    for (uint32_t i = 0; i < kWindow; ++i) {
      ASSERT_TRUE(a.SendOne(to_b, SendHeader(i, 4096), Pattern(4096, i)));
    }
    a.Flush();
    EXPECT_EQ(a.link->counts().bursts > 0, gso == UdpGso::kAuto);
    ASSERT_TRUE(b.PollFor(kWindow)) << b.received.packets.size();
    for (uint32_t i = 0; i < kWindow; ++i) {
      ASSERT_EQ(b.received.packets[i].header.psn, i);
      ASSERT_EQ(b.received.packets[i].payload, Pattern(4096, i));
    }
    EXPECT_EQ(b.link->Drops(), 0U);
    EXPECT_EQ(b.link->proof(from_a), IcrcProof::kFull);
  }
}

TEST_P(UdpLinkTest, EachQpHasItsSourcePort) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId path = a.ConnectTo(b, /*qpn=*/17, /*port=*/0xc017);
  EXPECT_EQ(a.ConnectTo(b, /*qpn=*/18, /*port=*/0xc018), path);
  const PathId from_a = b.ConnectTo(a);
  EXPECT_EQ(b.link->ReceiveFlow(from_a), nullptr);
  const auto port_of = [&](uint32_t qpn) {
    const size_t before = b.received.packets.size();
    a.SendAndFlush(path, SendHeader(1, 0, qpn));
    EXPECT_TRUE(b.PollFor(before + 1));
    return b.link->ReceiveFlow(from_a)->source_port;
  };
  EXPECT_EQ(port_of(17), 0xc017);
  EXPECT_EQ(port_of(18), 0xc018);
  EXPECT_EQ(port_of(99), 0xc017);  // nobody named it
  EXPECT_EQ(a.link->SendFlow(path)->source_port, 0xc017);
  EXPECT_EQ(a.link->SendFlow(path, 18)->source_port, 0xc018);
  a.link->Disconnect(path, 18);
  EXPECT_EQ(port_of(18), 0xc017);
  const PlainSocket free_again(a.address, 0xc018);
  EXPECT_EQ(b.link->ReceiveFlow(from_a)->source, a.address.gid);
}

TEST_P(UdpLinkTest, AnotherPortIsTakenWhenTheWantedOneIsNotFree) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  PlainSocket taken(a.address, 0xc0aa);
  const PathId path = a.ConnectTo(b, kAnyQpn, /*port=*/0xc0aa);
  const PathId from_a = b.ConnectTo(a);
  const uint16_t port = a.link->SendFlow(path)->source_port;
  EXPECT_NE(port, 0xc0aa);
  EXPECT_GE(port, 0xc000);
  EXPECT_EQ(a.link->Report(path).source_port, port);
  a.SendAndFlush(path, SendHeader(1, 8), Pattern(8, 1));
  ASSERT_TRUE(b.PollFor(1));
  EXPECT_EQ(b.link->ReceiveFlow(from_a)->source_port, port);
  EXPECT_EQ(b.link->proof(from_a), IcrcProof::kFull);
}

TEST_P(UdpLinkTest, PacketsLookAsTheFlowSays) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1));
  PlainSocket wire(Address(3), kRoceUdpPort);
  Flow flow = FlowBetween(a.address, wire.address);
  flow.hop_limit = 7;
  flow.traffic_class = 0x68;
  flow.flow_label = 0x12345;
  const PathId path = a.Connect({}, flow, kAnyQpn);
  EXPECT_FALSE(a.link->Report(path).flow_label_refused);
  a.SendAndFlush(path, SendHeader(1, 8), Pattern(8, 1));
  const auto got = wire.Receive();
  ASSERT_TRUE(got);
  EXPECT_EQ(got->hop_limit, 7);
  EXPECT_EQ(got->traffic_class, 0x68);
  EXPECT_EQ(got->source_port, 0xc111);
  if (!GetParam()) {
    EXPECT_EQ(got->flow_label, 0x12345U);
    EXPECT_EQ(a.link->SendFlow(path)->flow_label, 0x12345U);
  }
  EXPECT_EQ(got->bytes, PacketBytes(*a.link->SendFlow(path), SendHeader(1, 8), Pattern(8, 1)));
}

TEST_P(UdpLinkTest, LinkMayConnectToItself) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1));
  const PathId path = a.ConnectTo(a);
  a.SendAndFlush(path, SendHeader(5, 16), Pattern(16, 5));
  ASSERT_TRUE(a.PollFor(1));
  EXPECT_EQ(a.received.packets[0].path, path);
}

TEST_P(UdpLinkTest, AfterTheLastDisconnectPacketsAreDropped) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2)), other(Address(3));
  const PathId to_b = a.ConnectTo(b);
  const PathId from_a = b.ConnectTo(a, 17);
  EXPECT_EQ(b.ConnectTo(a, 17), from_a);
  b.ConnectTo(other);  // keeps b's socket in use
  b.link->Disconnect(from_a, 17);
  a.SendAndFlush(to_b, SendHeader(1, 0));
  ASSERT_TRUE(b.PollFor(1));
  b.link->Disconnect(from_a, 17);
  a.SendAndFlush(to_b, SendHeader(2, 0));
  EXPECT_TRUE(b.PollUntil([&] { return b.link->counts().unknown_source == 1; }));
  EXPECT_EQ(b.received.packets.size(), 1U);
  // A path that is gone takes packets and loses them.
  EXPECT_TRUE(b.link->CanSend(from_a));
  EXPECT_TRUE(b.SendAndFlush(from_a, SendHeader(3, 0)));
  EXPECT_EQ(b.counters.send_err, 1U);
  EXPECT_EQ(b.link->SendFlow(from_a), nullptr);
}

TEST(UdpLinkFamiliesTest, BothAtOnce) {
  REQUIRE_ADDRESSES(/*ipv4=*/false);
  UdpPeer both({TestAddress(true, 1), TestAddress(false, 1)}, UdpGso::kAuto, 1 << 20);
  UdpPeer four(TestAddress(true, 2)), six(TestAddress(false, 2));
  const auto addresses = ParseUdpBlob(both.link->LocalBlob());
  ASSERT_TRUE(addresses);
  EXPECT_EQ(addresses->size(), 2U);
  std::vector<PathId> paths;
  for (UdpPeer* peer : {&four, &six}) {
    const LocalAddress local = TestAddress(peer == &four, 1);
    paths.push_back(both.Connect(peer->link->LocalBlob(), FlowBetween(local, peer->address), 17));
    const PathId back =
        peer->Connect(both.link->LocalBlob(), FlowBetween(peer->address, local), kAnyQpn);
    for (uint32_t i = 0; i < 50; ++i)
      peer->SendOne(back, SendHeader(i, 64 + i), Pattern(64 + i, i));
    peer->Flush();
  }
  ASSERT_TRUE(both.PollFor(100));
  for (const PathId path : paths) {
    EXPECT_EQ(std::count_if(both.received.packets.begin(), both.received.packets.end(),
                            [path](const ReceivedPacket& p) { return p.path == path; }),
              50);
    both.SendAndFlush(path, SendHeader(1, 0));
  }
  EXPECT_TRUE(four.PollFor(1));
  EXPECT_TRUE(six.PollFor(1));
  // With one of them gone, the other is still looked at, whichever had its turn.
  const Flow to_four = FlowBetween(both.address, four.address);
  for (int i = 0; i < 4; ++i) {
    both.link->Disconnect(paths[0], 17);
    both.Poll();
    if (i < 3) both.Connect(four.link->LocalBlob(), to_four, 17);
    if (i % 2 == 0) both.Poll();
  }
  six.SendAndFlush(*six.link->Connect({}, FlowBetween(six.address, TestAddress(false, 1)), Soon()),
                   SendHeader(99, 0));
  EXPECT_TRUE(both.PollFor(101));
}

// A device's threads: one drives the link, one connects and disconnects QPs, one asks whether there
// is something to do.
TEST_P(UdpLinkTest, PathsComeAndGoWhilePacketsFlow) {
  REQUIRE_ADDRESSES(GetParam());
  UdpPeer a(Address(1)), b(Address(2));
  const PathId to_b = a.ConnectTo(b, 17);
  b.ConnectTo(a);
  std::atomic<bool> stop = false;
  std::thread control([&] {
    for (uint32_t i = 0; !stop.load(); ++i) {
      const uint32_t qpn = 100 + i % 4;
      const PathId same = a.ConnectTo(b, qpn, static_cast<uint16_t>(0xc200 + i % 3));
      const PathId other = a.ConnectTo(TestAddress(GetParam(), 8), 0xc300);
      a.link->Disconnect(same, qpn);
      a.link->Disconnect(other);
    }
  });
  std::thread looker([&] {
    while (!stop.load()) static_cast<void>(b.link->Pending());
  });
  for (uint32_t i = 0; i < 3000; ++i) {
    a.SendOne(to_b, SendHeader(i, 100, /*qpn=*/i % 2 == 0 ? 17 : 100), Pattern(100, i));
    if (i % 8 == 7) {
      a.Flush();
      EXPECT_TRUE(b.PollFor(i + 1));
    }
  }
  stop = true;
  control.join();
  looker.join();
  EXPECT_EQ(b.received.packets.size(), 3000U);
  EXPECT_EQ(b.counters.icrc_errors, 0U);
  EXPECT_EQ(a.counters.send_err, 0U);
}

}  // namespace
}  // namespace verbscope::soft
