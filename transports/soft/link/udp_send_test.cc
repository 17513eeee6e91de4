// What leaves: byte for byte, in which bursts, and what happens to what the system does not take.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>

#include "transports/soft/link/udp_test_support.h"

namespace verbscope::soft {
namespace {

class UdpSendTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    REQUIRE_ADDRESSES(GetParam());
    wire_ = std::make_unique<PlainSocket>(TestAddress(GetParam(), 2), kRoceUdpPort);
  }
  std::unique_ptr<UdpPeer> Link(UdpGso gso) const {
    return std::make_unique<UdpPeer>(TestAddress(GetParam(), 1), gso);
  }
  // Datagrams as a peer without merging gets them.
  std::vector<PlainDatagram> Wire(size_t expected) {
    std::vector<PlainDatagram> all;
    while (all.size() < expected) {
      auto next = wire_->Receive();
      if (!next) break;
      all.push_back(std::move(*next));
    }
    EXPECT_EQ(all.size(), expected);
    EXPECT_TRUE(wire_->ReceiveAll().empty());
    return all;
  }

  std::unique_ptr<PlainSocket> wire_;
};

INSTANTIATE_TEST_SUITE_P(Families, UdpSendTest, testing::Bool(),
                         [](const auto& p) { return p.param ? "IPv4" : "IPv6"; });

// A message of `packets`, the last shorter, and a single packet behind it.
void SendMessage(UdpPeer& link, PathId path, uint32_t packets) {
  for (uint32_t i = 0; i < packets; ++i) {
    const size_t bytes = i + 1 == packets ? 10 : 1024;
    ASSERT_TRUE(link.SendOne(path, SendHeader(i, bytes), Pattern(bytes, i)));
  }
  ASSERT_TRUE(link.SendOne(path, SendHeader(1000, 64), Pattern(64, 1000)));
  link.Flush();
}

TEST_P(UdpSendTest, BurstsLeaveTheSameDatagramsAsSingleSends) {
  constexpr uint32_t kPackets = 100;
  std::vector<PlainDatagram> with, without;
  for (const UdpGso gso : {UdpGso::kAuto, UdpGso::kOff}) {
    const auto link = Link(gso);
    const PathId path = link->ConnectTo(wire_->address);
    SendMessage(*link, path, kPackets);
    EXPECT_EQ(link->link->counts().bursts, gso == UdpGso::kAuto ? 2U : 0U);
    EXPECT_EQ(link->link->counts().bursts_refused, 0U);
    (gso == UdpGso::kAuto ? with : without) = Wire(kPackets + 1);
  }
  const Flow flow = FlowBetween(TestAddress(GetParam(), 1), wire_->address);
  // 63 packets of 1040 bytes: no more fit a send.
  const uint32_t burst = 62;
  for (uint32_t i = 0; i < with.size(); ++i) {
    const IcrcCheck single = CheckTransport(flow, without[i].bytes);
    EXPECT_EQ(single.proof, IcrcProof::kFull) << i;
    const IcrcCheck check = CheckTransport(flow, with[i].bytes);
    ASSERT_NE(check.proof, IcrcProof::kBad) << i;
    EXPECT_EQ(with[i].source_port, flow.source_port);
    if (!GetParam()) {
      EXPECT_EQ(with[i].bytes, without[i].bytes) << i;
      continue;
    }
    // On IPv4 the ID is in the ICRC, and nowhere else in what a socket sends.
    ASSERT_EQ(with[i].bytes.size(), without[i].bytes.size());
    EXPECT_TRUE(
        std::equal(with[i].bytes.begin(), with[i].bytes.end() - 4, without[i].bytes.begin()));
    EXPECT_EQ(check.id, i == kPackets ? 0 : i % burst) << i;
    EXPECT_TRUE(check.dont_fragment);
  }
}

TEST_P(UdpSendTest, BurstsAreOfOneQpAndOneSize) {
  const auto link = Link(UdpGso::kAuto);
  const PathId path = link->ConnectTo(wire_->address);
  const auto bursts_of = [&](std::vector<std::pair<uint32_t, size_t>> packets) {
    const uint64_t before = link->link->counts().bursts;
    for (const auto& [qpn, bytes] : packets) {
      EXPECT_TRUE(link->SendOne(path, SendHeader(1, bytes, qpn), Pattern(bytes, 1)));
    }
    link->Flush();
    const Flow flow = *link->link->SendFlow(path);
    for (const PlainDatagram& d : Wire(packets.size())) {
      EXPECT_NE(CheckTransport(flow, d.bytes).proof, IcrcProof::kBad);
    }
    return link->link->counts().bursts - before;
  };
  EXPECT_EQ(bursts_of({{17, 64}}), 0U);
  EXPECT_EQ(bursts_of({{17, 64}, {17, 64}}), 1U);
  EXPECT_EQ(bursts_of({{17, 64}, {18, 64}, {17, 64}}), 0U);
  EXPECT_EQ(bursts_of({{17, 64}, {17, 32}, {17, 32}}), 1U);  // the short one ends it
  EXPECT_EQ(bursts_of({{17, 64}, {17, 32}, {17, 32}, {17, 32}}), 2U);
  EXPECT_EQ(bursts_of({{17, 32}, {17, 64}, {17, 64}}), 1U);  // longer: a new one
}

TEST_P(UdpSendTest, RawPacketsStandAlone) {
  const auto link = Link(UdpGso::kAuto);
  const PathId path = link->ConnectTo(wire_->address);
  const Flow flow = *link->link->SendFlow(path);
  const auto raw = PacketBytes(flow, SendHeader(2, 64), Pattern(64, 2));
  link->SendOne(path, SendHeader(1, 64), Pattern(64, 1));
  EXPECT_TRUE(link->SendRaw(path, raw));
  link->SendOne(path, SendHeader(3, 64, /*qpn=*/0), Pattern(64, 3));
  EXPECT_TRUE(link->SendRaw(path, Pattern(5, 5)));  // no packet at all
  link->Flush();
  const auto got = Wire(4);
  EXPECT_EQ(got[1].bytes, raw);
  EXPECT_EQ(got[3].bytes, Pattern(5, 5));
  EXPECT_EQ(CheckTransport(flow, got[2].bytes).proof, IcrcProof::kFull);
  EXPECT_EQ(link->link->counts().bursts, 0U);
}

TEST_P(UdpSendTest, FullBatchLeavesByItself) {
  const auto link = Link(UdpGso::kOff);
  const PathId path = link->ConnectTo(wire_->address);
  for (uint32_t i = 0; i < 128; ++i) {
    EXPECT_TRUE(link->link->CanSend(path));
    link->SendOne(path, SendHeader(i, 0));
  }
  EXPECT_TRUE(link->link->CanSend(path));
  EXPECT_EQ(Wire(128).size(), 128U);
}

TEST_P(UdpSendTest, PacketsThatAreTooLongAreCounted) {
  const auto link = Link(UdpGso::kAuto);
  const PathId path = link->ConnectTo(wire_->address);
  EXPECT_TRUE(link->SendOne(path, SendHeader(1, 0), Pattern(kMaxUdpPayload + 4, 1)));
  EXPECT_TRUE(link->SendRaw(path, Pattern(kMaxUdpPacket + 1, 1)));
  EXPECT_EQ(link->counters.send_err, 2U);
  link->SendAndFlush(path, SendHeader(2, 4096), Pattern(4096, 1));
  EXPECT_EQ(Wire(1).size(), 1U);
}

TEST_P(UdpSendTest, PacketsBeyondTheInterfaceMtuAreCountedAndHoldNothingUp) {
  for (const UdpGso gso : {UdpGso::kAuto, UdpGso::kOff}) {
    if (!OwnNetwork::SetLoopbackMtu(1500)) GTEST_SKIP() << "no own network namespace";
    const auto link = Link(gso);
    const PathId path = link->ConnectTo(wire_->address);
    EXPECT_EQ(link->link->Report(path).interface_mtu_bytes, 1500U);
    for (uint32_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(link->SendOne(path, SendHeader(i, 4096), Pattern(4096, i)));
    }
    link->SendAndFlush(path, SendHeader(9, 1024), Pattern(1024, 9));
    EXPECT_EQ(link->counters.send_err, 5U);
    EXPECT_EQ(link->link->counts().last_send_errno, EMSGSIZE);
    EXPECT_EQ(link->link->counts().bursts_refused, gso == UdpGso::kAuto ? 1U : 0U);
    EXPECT_TRUE(link->link->CanSend(path));
    EXPECT_EQ(Wire(1).size(), 1U);
    ASSERT_TRUE(OwnNetwork::SetLoopbackMtu(65536));
  }
}

// A queue that is full on demand: a Unix datagram socket takes a few datagrams and then no more.
class UdpSenderTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string name = "verbscope-udp-test-" + std::to_string(::getpid());
    sockaddr_un un = {};
    un.sun_family = AF_UNIX;
    std::copy(name.begin(), name.end(), un.sun_path + 1);
    std::memcpy(&flow_.to.storage, &un, sizeof(un));
    flow_.to.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    reader_.Reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(::bind(reader_.get(), flow_.to.generic(), flow_.to.size), 0);
    flow_.socket = std::make_shared<SendSocket>();
    flow_.socket->fd.Reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    flow_.flow = TestFlow(1, 2);
    flow_.ipv4 = true;
  }
  bool Send(uint32_t psn) { return sender_.Send(flow_, SendHeader(psn, 0), {}); }
  // Takes what is in the queue; PSNs must follow each other.
  size_t Drain() {
    std::array<std::byte, 256> bytes;
    size_t count = 0;
    for (;; ++count) {
      const ssize_t got = ::recv(reader_.get(), bytes.data(), bytes.size(), 0);
      if (got < 0) return count;
      const std::span packet(bytes.data(), static_cast<size_t>(got));
      EXPECT_TRUE(VerifyTransport(flow_.flow, packet));
      Header header;
      std::span<const std::byte> payload;
      EXPECT_EQ(Decode(packet.first(packet.size() - kIcrcBytes), header, payload),
                DecodeResult::kOk);
      EXPECT_EQ(header.psn, drained_++);
    }
  }

  FileDescriptor reader_;
  UdpFlow flow_;
  Counters counters_;
  UdpCounts counts_;
  UdpSender sender_{counters_, counts_};
  uint32_t drained_ = 0;
};

TEST_F(UdpSenderTest, WhatHasNoRoomStaysAndGoesLater) {
  uint32_t sent = 0;
  while (sent < 10000 && Send(sent)) ++sent;
  ASSERT_LT(sent, 10000U);
  EXPECT_FALSE(sender_.HasRoom());
  EXPECT_TRUE(sender_.blocked());
  EXPECT_EQ(sender_.blocked_socket(), flow_.socket->fd.get());
  EXPECT_GT(counts_.blocked, 0U);
  EXPECT_FALSE(Send(sent));
  EXPECT_EQ(counters_.send_err, 0U);
  size_t got = 0;
  while (sender_.blocked()) {
    const size_t now = Drain();
    ASSERT_GT(now, 0U);
    got += now;
    sender_.Flush();
  }
  got += Drain();
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(sender_.HasRoom());
  EXPECT_EQ(sender_.blocked_socket(), -1);
  EXPECT_TRUE(Send(sent));
  sender_.Flush();
  EXPECT_EQ(Drain(), 1U);
}

// The queue is full from the beginning, so everything waits. The kernel knows no bursts on such a
// socket: each comes as one long datagram.
TEST_F(UdpSenderTest, BurstsThatWaitKeepTheirLimits) {
  const FileDescriptor other(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  while (::sendto(other.get(), "x", 1, 0, flow_.to.generic(), flow_.to.size) == 1) {
  }
  flow_.bursts = true;
  const auto send = [&](size_t packets, size_t bytes) {
    for (size_t i = 0; i < packets; ++i) {
      const auto data = Pattern(bytes, 1);
      const std::span<const std::byte> pieces[] = {data};
      EXPECT_TRUE(sender_.Send(flow_, SendHeader(1, bytes), pieces));
    }
  };
  send(kMaxBurst + 6, 48);
  send(1, 40);  // joins the six and ends them
  send(1, 40);
  send(20, 4096);
  EXPECT_TRUE(sender_.SendRaw(flow_, Pattern(4112, 2)));
  EXPECT_TRUE(sender_.blocked());
  std::vector<size_t> lengths;
  std::vector<std::byte> bytes(70000);
  for (;;) {
    const ssize_t got = ::recv(reader_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && !sender_.blocked()) break;
    if (got < 0) sender_.Flush();
    if (got > 1) lengths.push_back(static_cast<size_t>(got));
  }
  const size_t small = 48 + kBthBytes + kIcrcBytes;
  const size_t large = 4096 + kBthBytes + kIcrcBytes;
  EXPECT_EQ(lengths, (std::vector<size_t>{kMaxBurst * small, 6 * small + small - 8, small - 8,
                                          15 * large, 5 * large, large}));
  EXPECT_LE(15 * large, kMaxBurstBytes);
}

TEST_F(UdpSenderTest, WhatIsLeftOfAFlowThatGoesIsLost) {
  uint32_t sent = 0;
  while (sent < 10000 && Send(sent)) ++sent;
  ASSERT_TRUE(sender_.blocked());
  sender_.Forget(flow_);
  const size_t got = Drain();
  EXPECT_EQ(counters_.send_err + got, sent);
  sender_.Flush();
  EXPECT_FALSE(sender_.blocked());
  EXPECT_TRUE(sender_.HasRoom());
  EXPECT_EQ(Drain(), 0U);
}

TEST_F(UdpSenderTest, ErrorsAreCountedAndThePacketsLost) {
  flow_.socket->fd.Reset(-1);
  for (uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(Send(i));
  sender_.Flush();
  EXPECT_EQ(counters_.send_err, 3U);
  EXPECT_EQ(counts_.last_send_errno, EBADF);
  EXPECT_FALSE(sender_.blocked());
}

// The kernel refuses bursts from a socket without UDP checksums.
TEST(UdpBurstTest, RefusedOneGoesPacketByPacketWithTheIdsOfSingleOnes) {
  const LocalAddress from = TestAddress(/*ipv4=*/true, 1);
  PlainSocket wire(TestAddress(/*ipv4=*/true, 2), kRoceUdpPort);
  auto socket = OpenSend(from, 0xc111, 64, 0, 1 << 20);
  ASSERT_TRUE(socket) << socket.error().ToText();
  const int on = 1;
  ASSERT_EQ(::setsockopt(socket->fd.get(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)), 0);
  UdpFlow flow;
  flow.flow = FlowBetween(from, wire.address);
  flow.to = wire.address.Socket(kRoceUdpPort);
  flow.socket = std::make_shared<SendSocket>(std::move(*socket));
  flow.ipv4 = flow.bursts = true;
  Counters counters;
  UdpCounts counts;
  UdpSender sender(counters, counts);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_TRUE(sender.Send(flow, SendHeader(i, 0), {}));
  sender.Flush();
  EXPECT_EQ(counts.bursts_refused, 1U);
  EXPECT_EQ(counts.bursts, 0U);
  EXPECT_FALSE(flow.bursts);  // not tried again
  EXPECT_EQ(counters.send_err, 0U);
  for (uint32_t i = 0; i < 5; ++i) {
    const auto got = wire.Receive();
    ASSERT_TRUE(got);
    EXPECT_TRUE(VerifyTransport(flow.flow, got->bytes)) << i;
  }
}

}  // namespace
}  // namespace verbscope::soft
