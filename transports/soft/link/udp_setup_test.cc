// What cannot be set up is refused with a cause and a next step.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "transports/soft/link/udp_test_support.h"

namespace verbscope::soft {
namespace {

LocalAddress Ipv4(uint8_t last) { return TestAddress(/*ipv4=*/true, last); }

Error CreateError(std::vector<LocalAddress> addresses) {
  MutexLock lock;
  Counters counters;
  UdpOptions options;
  for (LocalAddress& address : addresses) {
    options.locals.push_back({.address = std::move(address), .socket = {}});
  }
  auto link = UdpLink::Create(std::move(options), lock, counters);
  EXPECT_FALSE(link);
  return link ? Error{} : std::move(link.error());
}

Error ConnectError(UdpPeer& peer, std::span<const std::byte> blob, const Flow& flow) {
  auto path = peer.link->Connect(blob, flow, Soon());
  EXPECT_FALSE(path);
  return path ? Error{} : std::move(path.error());
}

void ExpectHelpful(const Error& error) {
  EXPECT_EQ(error.error_class, ErrorClass::kSetup);
  EXPECT_FALSE(error.message.empty());
  EXPECT_FALSE(error.cause.empty()) << error.message;
  EXPECT_FALSE(error.next_step.empty()) << error.message;
}

TEST(UdpSetupTest, PortThatIsTaken) {
  PlainSocket other(Ipv4(1), kRoceUdpPort);
  const Error error = CreateError({Ipv4(1)});
  EXPECT_EQ(error.errno_value, EADDRINUSE);
  ExpectHelpful(error);
  EXPECT_NE(error.next_step.find("addr="), std::string::npos);
  EXPECT_NE(error.next_step.find("namespace"), std::string::npos);
  EXPECT_NE(error.next_step.find("link=memory"), std::string::npos);
}

TEST(UdpSetupTest, AddressOfAnotherHost) {
  const Error error = CreateError({LocalAddress::Ipv4(192, 0, 2, 77)});
  EXPECT_EQ(error.errno_value, EADDRNOTAVAIL);
  ExpectHelpful(error);
}

TEST(UdpSetupTest, NoAddressOrTooMany) {
  ExpectHelpful(CreateError({}));
  ExpectHelpful(CreateError({Ipv4(1), Ipv4(2), Ipv4(3), Ipv4(4), Ipv4(5)}));
}

TEST(UdpSetupTest, BoundSocketIsUsed) {
  auto bound = BindOwnLoopback();
  ASSERT_TRUE(bound) << bound.error().ToText();
  const LocalAddress address = bound->address;
  MutexLock lock;
  Counters counters;
  UdpOptions options;
  options.locals.push_back(std::move(*bound));
  auto link = UdpLink::Create(std::move(options), lock, counters);
  ASSERT_TRUE(link) << link.error().ToText();
  auto path = (*link)->Connect({}, FlowBetween(address, Ipv4(9)), Soon());
  ASSERT_TRUE(path) << path.error().ToText();
  PlainSocket sender(Ipv4(9), 0xc222);
  const Flow flow = FlowBetween(Ipv4(9), address, 0xc222);
  sender.SendTo(address, PacketBytes(flow, SendHeader(1, 4), Pattern(4, 1)));
  RecordingReceiver received;
  const Deadline deadline = Soon();
  while (received.packets.empty() && !deadline.Passed()) {
    DeviceLockHolder hold(lock);
    (*link)->Poll(received, 16);
  }
  EXPECT_EQ(received.packets.size(), 1U);
}

TEST(UdpSetupTest, SmallReceiveBufferIsSaid) {
  MutexLock lock;
  Counters counters;
  UdpOptions options;
  options.locals.push_back({.address = Ipv4(1), .socket = {}});
  options.buffer_bytes = size_t{1} << 29;
  auto link = UdpLink::Create(std::move(options), lock, counters);
  ASSERT_TRUE(link) << link.error().ToText();
  const bool granted = (*link)->receive_buffer_bytes() >= (size_t{1} << 29);
  EXPECT_GT((*link)->receive_buffer_bytes(), 0U);
  EXPECT_EQ((*link)->Notices().empty(), granted);
}

TEST(UdpSetupTest, BlobIsSmallAndKnown) {
  UdpPeer a(Ipv4(1));
  EXPECT_TRUE(IsUdpBlob(a.link->LocalBlob()));
  EXPECT_LT(EncodeUdpBlob(UdpAddresses(kMaxUdpLocals)).size(), kMaxBlobBytes);
  const auto addresses = ParseUdpBlob(a.link->LocalBlob());
  ASSERT_TRUE(addresses);
  EXPECT_EQ(*addresses, UdpAddresses{a.address.gid});
}

TEST(UdpSetupTest, PeersThatSpeakAnotherLink) {
  UdpPeer a(Ipv4(1));
  TestPeer memory;
  const Flow flow = FlowBetween(a.address, Ipv4(2));
  ExpectHelpful(ConnectError(a, memory.link->LocalBlob(), flow));
  const auto good = EncodeUdpBlob({Ipv4(2).gid});
  for (size_t size = 1; size < good.size(); ++size) {
    ExpectHelpful(ConnectError(a, std::span(good).first(size), flow));
  }
  auto longer = good;
  longer.push_back({});
  ExpectHelpful(ConnectError(a, longer, flow));
  auto newer = good;
  newer[4] = std::byte{3};
  ExpectHelpful(ConnectError(a, newer, flow));
  EXPECT_TRUE(a.link->Connect(good, flow, Soon()));
}

TEST(UdpSetupTest, PeerThatIsElsewhere) {
  UdpPeer a(Ipv4(1)), b(Ipv4(2));
  const Error error = ConnectError(a, b.link->LocalBlob(), FlowBetween(a.address, Ipv4(3)));
  ExpectHelpful(error);
  EXPECT_NE(error.cause.find(b.address.ToText()), std::string::npos) << error.cause;
}

TEST(UdpSetupTest, SourceThatIsNotOurs) {
  UdpPeer a(Ipv4(1));
  ExpectHelpful(ConnectError(a, {}, FlowBetween(Ipv4(4), Ipv4(2))));
}

TEST(UdpSetupTest, FamiliesThatDiffer) {
  UdpPeer a(Ipv4(1));
  ExpectHelpful(ConnectError(a, {}, FlowBetween(a.address, TestAddress(/*ipv4=*/false, 2))));
}

TEST(UdpSetupTest, PeerWithoutRoute) {
  if (!kInOwnNetwork) GTEST_SKIP() << "no own network namespace";
  UdpPeer a(TestAddress(/*ipv4=*/false, 1));
  LocalAddress far;
  far.gid = {0x20, 0x01, 0x0d, 0xb8};
  const Error error = ConnectError(a, {}, FlowBetween(a.address, far));
  ExpectHelpful(error);
  EXPECT_NE(error.errno_value, 0);
}

TEST(UdpSetupTest, RouteIsKnown) {
  UdpPeer a(Ipv4(1));
  const PathId path = a.ConnectTo(Ipv4(2));
  const UdpPathReport report = a.link->Report(path);
  EXPECT_EQ(report.netdev, "lo");
  EXPECT_GE(report.interface_mtu_bytes, 1500U);
  EXPECT_TRUE(report.bursts);
  EXPECT_FALSE(report.proof);
  EXPECT_EQ(a.link->Report(77).netdev, "");
}

TEST(UdpSetupTest, RoceMtuLeavesRoomForHeaders) {
  EXPECT_EQ(RoceMtu(65536), 4096U);
  EXPECT_EQ(RoceMtu(9000), 4096U);
  EXPECT_EQ(RoceMtu(4176), 4096U);
  EXPECT_EQ(RoceMtu(4175), 2048U);
  EXPECT_EQ(RoceMtu(1500), 1024U);
  EXPECT_EQ(RoceMtu(300), 0U);
}

TEST(UdpSetupTest, SourcePortsOfManyQpsAndPeers) {
  UdpPeer a(Ipv4(1));
  // One port, two peers: one socket. The same with another hop limit: another port.
  const PathId two = a.ConnectTo(Ipv4(2), 0xc333);
  const PathId three = a.ConnectTo(Ipv4(3), 0xc333);
  Flow flow = FlowBetween(a.address, Ipv4(4), 0xc333);
  flow.hop_limit = 1;
  const PathId four = a.Connect({}, flow, kAnyQpn);
  EXPECT_EQ(a.link->SendFlow(two)->source_port, 0xc333);
  EXPECT_EQ(a.link->SendFlow(three)->source_port, 0xc333);
  EXPECT_NE(a.link->SendFlow(four)->source_port, 0xc333);
  // The port is free again when nobody sends from it.
  a.link->Disconnect(two);
  a.link->Disconnect(three);
  PlainSocket now(a.address, 0xc333);
}

}  // namespace
}  // namespace verbscope::soft
