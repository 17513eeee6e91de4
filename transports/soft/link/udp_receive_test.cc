// What arrives and must not be delivered, and what is proven of what may.
#include <gtest/gtest.h>
#include <linux/udp.h>

#include <random>

#include "transports/soft/link/udp_test_support.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

namespace verbscope::soft {
namespace {

// A link, and a peer that is a plain socket.
class UdpReceiveTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    REQUIRE_ADDRESSES(GetParam());
    link_ = std::make_unique<UdpPeer>(TestAddress(GetParam(), 1));
    peer_ = std::make_unique<PlainSocket>(TestAddress(GetParam(), 2), 0xc222);
    path_ = link_->ConnectTo(peer_->address);
    flow_ = FlowBetween(peer_->address, link_->address, 0xc222);
  }
  std::vector<std::byte> Packet(uint32_t psn, uint16_t id = 0, size_t bytes = 40) const {
    return PacketBytes(flow_, SendHeader(psn, bytes), Pattern(bytes, psn), id);
  }
  void Send(std::span<const std::byte> bytes) { peer_->SendTo(link_->address, bytes); }
  // A good packet, and all before it has been looked at when it has come.
  void ExpectOnlyGoodOneComes() {
    Send(Packet(0x777));
    ASSERT_TRUE(link_->PollFor(1));
    ASSERT_EQ(link_->received.packets.size(), 1U);
    EXPECT_EQ(link_->received.packets[0].header.psn, 0x777U);
    EXPECT_EQ(link_->link->proof(path_), IcrcProof::kFull);
  }

  std::unique_ptr<UdpPeer> link_;
  std::unique_ptr<PlainSocket> peer_;
  PathId path_ = kNoPath;
  Flow flow_;
};

INSTANTIATE_TEST_SUITE_P(Families, UdpReceiveTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "IPv4" : "IPv6"; });

TEST_P(UdpReceiveTest, WrongIcrcIsCounted) {
  const auto good = Packet(1);
  size_t sent = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    if (i == 4) continue;  // the byte of FECN, BECN and reserved bits, which the ICRC leaves out
    auto bad = good;
    bad[i] ^= std::byte{0x10};
    Send(bad);
    ++sent;
  }
  ExpectOnlyGoodOneComes();
  EXPECT_EQ(link_->counters.icrc_errors, sent);
}

TEST_P(UdpReceiveTest, BitsThatTheIcrcLeavesOutDoNotMatter) {
  auto marked = Packet(0x777);
  marked[4] = std::byte{0xc0};  // FECN and BECN
  Send(marked);
  ASSERT_TRUE(link_->PollFor(1));
  EXPECT_EQ(link_->received.packets[0].header.psn, 0x777U);
}

TEST_P(UdpReceiveTest, TruncatedIsCounted) {
  const auto good = Packet(1);
  for (size_t size = 0; size < good.size(); ++size) Send(std::span(good).first(size));
  ExpectOnlyGoodOneComes();
  EXPECT_EQ(link_->counters.malformed_pkts, kBthBytes + kIcrcBytes);
  EXPECT_EQ(link_->counters.icrc_errors, good.size() - kBthBytes - kIcrcBytes);
}

TEST_P(UdpReceiveTest, RandomBytesAreCounted) {
  std::mt19937 random(20);
  constexpr size_t kDatagrams = 200;
  for (size_t i = 0; i < kDatagrams; ++i) {
    std::vector<std::byte> bytes(random() % 3000);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    Send(bytes);
  }
  Send(std::vector<std::byte>(kMaxUdpPacket + 1));
  ExpectOnlyGoodOneComes();
  EXPECT_EQ(link_->counters.icrc_errors + link_->counters.malformed_pkts, kDatagrams + 1);
}

TEST_P(UdpReceiveTest, RightIcrcOfWrongHeadersIsMalformed) {
  Header header = SendHeader(1, 4);
  header.opcode = static_cast<Opcode>(0x1f);
  Send(PacketBytes(flow_, header, Pattern(4, 1)));
  header = SendHeader(1, 4, /*qpn=*/1);
  Send(PacketBytes(flow_, header, Pattern(4, 1)));
  ExpectOnlyGoodOneComes();
  EXPECT_EQ(link_->counters.malformed_pkts, 2U);
}

TEST_P(UdpReceiveTest, LongerThanAnyPacketIsMalformed) {
  Send(Packet(1, /*id=*/0, /*bytes=*/kMaxUdpPacket - kBthBytes - kIcrcBytes + 1));
  ExpectOnlyGoodOneComes();
  EXPECT_EQ(link_->counters.malformed_pkts, 1U);
}

TEST_P(UdpReceiveTest, ForeignSenderIsCountedAndDropped) {
  PlainSocket foreign(TestAddress(GetParam(), 3), 0xc222);
  const Flow flow = FlowBetween(foreign.address, link_->address, 0xc222);
  foreign.SendTo(link_->address, PacketBytes(flow, SendHeader(1, 4), Pattern(4, 1)));
  // Neither does an ICRC for another sender's address make a packet that sender's.
  foreign.SendTo(link_->address, Packet(2));
  ExpectOnlyGoodOneComes();
  EXPECT_EQ(link_->link->counts().unknown_source, 2U);
}

TEST_P(UdpReceiveTest, AnySourcePortOfAPeerIsHeard) {
  PlainSocket other(peer_->address, 0xd333);
  flow_.source_port = 0xd333;
  other.SendTo(link_->address, Packet(5));
  ASSERT_TRUE(link_->PollFor(1));
  EXPECT_EQ(link_->link->ReceiveFlow(path_)->source_port, 0xd333);
  // But the ICRC covers it.
  Send(Packet(6));
  EXPECT_TRUE(link_->PollUntil([&] { return link_->counters.icrc_errors == 1; }));
}

TEST_P(UdpReceiveTest, CongestionNotificationIsCounted) {
  Header header = SendHeader(0, 16);
  header.opcode = static_cast<Opcode>(0x81);
  Send(PacketBytes(flow_, header, std::vector<std::byte>(16)));
  auto bad = PacketBytes(flow_, header, std::vector<std::byte>(16));
  bad.back() ^= std::byte{1};
  Send(bad);
  ExpectOnlyGoodOneComes();
  EXPECT_EQ(link_->link->counts().cnps, 1U);
  EXPECT_EQ(link_->counters.icrc_errors, 1U);
  EXPECT_EQ(link_->counters.malformed_pkts, 0U);
}

TEST_P(UdpReceiveTest, CongestionMarkIsCountedAndThePacketDelivered) {
  const int marked = 3;
  const int level = GetParam() ? IPPROTO_IP : IPPROTO_IPV6;
  const int option = GetParam() ? IP_TOS : IPV6_TCLASS;
  ASSERT_EQ(::setsockopt(peer_->fd.get(), level, option, &marked, sizeof(marked)), 0);
  Send(Packet(1));
  ASSERT_TRUE(link_->PollFor(1));
  EXPECT_EQ(link_->link->counts().ecn_marked, 1U);
}

TEST_P(UdpReceiveTest, MissingUdpChecksumIsAccepted) {
  const int on = 1;
  const int level = GetParam() ? SOL_SOCKET : IPPROTO_UDP;
  const int option = GetParam() ? SO_NO_CHECK : UDP_NO_CHECK6_TX;
  ASSERT_EQ(::setsockopt(peer_->fd.get(), level, option, &on, sizeof(on)), 0);
  ExpectOnlyGoodOneComes();
}

TEST_P(UdpReceiveTest, OtherIdsAreSolvedOnIpv4Only) {
  Send(Packet(1, /*id=*/0x4321));
  if (!GetParam()) {  // there is none
    ASSERT_TRUE(link_->PollFor(1));
    EXPECT_EQ(link_->link->proof(path_), IcrcProof::kFull);
    return;
  }
  ASSERT_TRUE(link_->PollFor(1));
  EXPECT_EQ(link_->link->proof(path_), IcrcProof::kRecovered);
  EXPECT_EQ(link_->link->Report(path_).proof, IcrcProof::kRecovered);
  EXPECT_EQ(link_->link->counts().id_recovered, 1U);
  // The weakest counts.
  Send(Packet(2));
  ASSERT_TRUE(link_->PollFor(2));
  EXPECT_EQ(link_->link->proof(path_), IcrcProof::kRecovered);
}

TEST_P(UdpReceiveTest, PeerThatCountsMayNotUseIdsFromElsewhere) {
  if (!GetParam()) GTEST_SKIP() << "IPv6 has no ID";
  constexpr uint16_t kCounted = 40;
  for (uint16_t i = 0; i < kCounted; ++i) Send(Packet(i, static_cast<uint16_t>(0x4321 + i)));
  ASSERT_TRUE(link_->PollFor(kCounted));
  Send(Packet(kCounted, /*id=*/0x9000));  // what a damaged packet looks like that has a right ICRC
  ASSERT_TRUE(link_->PollUntil([&] { return link_->counters.icrc_errors == 1; }));
  Send(Packet(kCounted, /*id=*/0x4321 + kCounted));
  ASSERT_TRUE(link_->PollFor(kCounted + 1));
  EXPECT_EQ(link_->received.packets.size(), kCounted + 1U);
}

TEST_P(UdpReceiveTest, DeviceOfThisKindMayNotUseOtherIds) {
  if (!GetParam()) GTEST_SKIP() << "IPv6 has no ID";
  UdpPeer link(TestAddress(true, 7));
  const Flow back = FlowBetween(link.address, peer_->address);
  const PathId path = link.Connect(EncodeUdpBlob({peer_->address.gid}), back, kAnyQpn);
  flow_ = FlowBetween(peer_->address, link.address, 0xc222);
  peer_->SendTo(link.address, Packet(1, /*id=*/0x4321));
  EXPECT_TRUE(link.PollUntil([&] { return link.counters.icrc_errors == 1; }));
  peer_->SendTo(link.address, Packet(2, /*id=*/5));  // from a burst that was taken apart
  ASSERT_TRUE(link.PollFor(1));
  EXPECT_EQ(link.link->proof(path), IcrcProof::kFull);
  EXPECT_EQ(link.link->counts().placed, 1U);
}

// An address may have both, one behind the other.
TEST_P(UdpReceiveTest, OtherIdsAreHeardAsLongAsOnePeerIsOfAnotherKind) {
  if (!GetParam()) GTEST_SKIP() << "IPv6 has no ID";
  const Flow back = FlowBetween(link_->address, peer_->address, 0xc018);
  EXPECT_EQ(link_->Connect(EncodeUdpBlob({peer_->address.gid}), back, /*qpn=*/18), path_);
  Send(Packet(1, /*id=*/0x4321));
  ASSERT_TRUE(link_->PollFor(1));
}

// A burst that a sender handed to the kernel whole: segment k has ID k.
TEST_P(UdpReceiveTest, BurstIsFullyProven) {
  constexpr uint16_t kPackets = 9;
  std::vector<std::byte> burst;
  size_t segment = 0;
  for (uint16_t k = 0; k < kPackets; ++k) {
    const auto packet = Packet(k, k, k + 1 == kPackets ? 8 : 40);
    if (k == 0) segment = packet.size();
    burst.insert(burst.end(), packet.begin(), packet.end());
  }
  // A crowd first, from which on bursts come whole.
  constexpr uint32_t kCrowd = 20;
  for (uint32_t i = 0; i < kCrowd; ++i) Send(Packet(i));
  ASSERT_TRUE(link_->PollFor(kCrowd));
  link_->received.packets.clear();
  const int size = static_cast<int>(segment);
  ASSERT_EQ(::setsockopt(peer_->fd.get(), IPPROTO_UDP, UDP_SEGMENT, &size, sizeof(size)), 0);
  Send(burst);
  ASSERT_TRUE(link_->PollFor(kPackets)) << link_->counters.icrc_errors;
  for (uint32_t k = 0; k < kPackets; ++k) {
    EXPECT_EQ(link_->received.packets[k].header.psn, k);
    EXPECT_EQ(link_->received.packets[k].payload, Pattern(k + 1 == kPackets ? 8 : 40, k));
  }
  EXPECT_EQ(link_->link->proof(path_), IcrcProof::kFull);
}

// One bad packet in a merged datagram does not take the others with it; and packets that the kernel
// merged without a burst have ID 0.
TEST_P(UdpReceiveTest, PacketsOfAMergedDatagramAreJudgedEach) {
  ArrivalState arrivals;
  arrivals.flow = flow_;
  for (const bool numbered : {true, false, true}) {
    std::vector<std::byte> merged;
    size_t segment = 0;
    for (uint16_t k = 0; k < 6; ++k) {
      auto packet = Packet(k, numbered ? k : 0);
      if (k == 2) packet[20] ^= std::byte{1};
      segment = packet.size();
      merged.insert(merged.end(), packet.begin(), packet.end());
    }
    merged.erase(merged.end() - 30, merged.end());  // and the last is cut
    Counters counters;
    UdpCounts counts;
    RecordingReceiver received;
    Datagram datagram(merged, segment);
    EXPECT_EQ(datagram.packets_left(), 6U);
    EXPECT_EQ(DeliverPackets(datagram, 3, arrivals, received, 4, counters, counts), 4U);
    EXPECT_EQ(datagram.packets_left(), 2U);
    EXPECT_EQ(DeliverPackets(datagram, 3, arrivals, received, 4, counters, counts), 2U);
    EXPECT_TRUE(datagram.done());
    ASSERT_EQ(received.packets.size(), 4U);
    EXPECT_EQ(received.packets[2].header.psn, 3U);
    EXPECT_EQ(counters.icrc_errors, 2U);
    EXPECT_EQ(arrivals.proof, IcrcProof::kFull);
    EXPECT_EQ(arrivals.numbered, numbered && GetParam());
  }
}

TEST(UdpDatagramTest, TakenApartWithoutGapOrOverlap) {
  const std::vector<std::byte> bytes(100);
  for (const size_t segment : {0U, 1U, 33U, 50U, 99U, 100U, 101U, 65535U}) {
    Datagram datagram(bytes, segment);
    const size_t packets = datagram.packets_left();
    size_t at = 0;
    size_t taken = 0;
    while (!datagram.done()) {
      EXPECT_EQ(datagram.place(), taken++);
      const auto packet = datagram.Take();
      EXPECT_EQ(packet.data(), bytes.data() + at);
      at += packet.size();
    }
    EXPECT_EQ(at, bytes.size());
    EXPECT_EQ(taken, packets);
    EXPECT_EQ(datagram.packets_left(), 0U);
  }
  Datagram empty({}, 0);
  EXPECT_EQ(empty.packets_left(), 1U);
  EXPECT_TRUE(empty.Take().empty());
  EXPECT_TRUE(empty.done());
}

}  // namespace
}  // namespace verbscope::soft
