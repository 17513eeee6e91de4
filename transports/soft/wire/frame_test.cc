#include "transports/soft/wire/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "transports/soft/wire/test_packets.h"

namespace verbscope::soft {
namespace {

using View = std::span<const std::byte>;

std::array<uint8_t, 16> Gid(const char* hex) {
  std::array<uint8_t, 16> gid{};
  const Bytes bytes = FromHex(hex);
  std::transform(bytes.begin(), bytes.end(), gid.begin(),
                 [](std::byte b) { return std::to_integer<uint8_t>(b); });
  return gid;
}

Flow Ipv4Flow() {
  return {.source = Gid(kAddress1), .destination = Gid(kAddress2), .source_port = 0xc123};
}

Flow Ipv6Flow() {
  return {.source = Gid(kFd1),
          .destination = Gid(kFd2),
          .source_port = 0xc123,
          .hop_limit = 3,
          .traffic_class = 0xab,
          .flow_label = 0xf859e};
}

Bytes Data(size_t size) {
  Bytes data(size);
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(i * 7 + 1);
  return data;
}

Header SendOnly(size_t payload_bytes) {
  return {.opcode = Opcode::kSendOnly, .pad = PadFor(payload_bytes), .dest_qpn = 9, .psn = 5};
}

// The one's complement sum of 16-bit words, byte by byte.
uint32_t PlainSum(View bytes) {
  uint32_t sum = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    sum += std::to_integer<uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
  }
  return sum;
}

uint32_t Fold(uint32_t sum) {
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return sum;
}

TEST(Frame, RealPacketsAreTakenApart) {
  for (const TestPacket& packet : TestPackets()) {
    SCOPED_TRACE(packet.name);
    const Bytes bytes = FromHex(packet.hex);
    const std::optional<Frame> frame = ParseFrame(bytes);
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->flow.source, Gid(packet.source));
    EXPECT_EQ(frame->flow.destination, Gid(packet.destination));
    EXPECT_EQ(frame->flow.source_port, packet.source_port);
    EXPECT_EQ(frame->flow.hop_limit, 64);
    EXPECT_EQ(frame->ipv4_id, packet.id);
    EXPECT_EQ(IsIpv4(frame->flow), packet.ipv4);
    EXPECT_EQ(frame->transport.data(), bytes.data() + (packet.ipv4 ? 28 : 48));
    EXPECT_EQ(frame->transport.data() + frame->transport.size(), bytes.data() + bytes.size());
  }
  EXPECT_EQ(ParseFrame(FromHex(TestPackets()[0].hex))->flow.traffic_class, 0x01);
  EXPECT_EQ(ParseFrame(FromHex(TestPackets()[1].hex))->flow.traffic_class, 0xc2);
  EXPECT_EQ(ParseFrame(FromHex(TestPackets()[8].hex))->flow.flow_label, 0x7859eU);
}

TEST(Frame, RealPacketsAreBuiltAgain) {
  for (const TestPacket& packet : TestPackets()) {
    if (!packet.rc) continue;
    SCOPED_TRACE(packet.name);
    Bytes bytes = FromHex(packet.hex);
    const std::optional<Frame> frame = ParseFrame(bytes);
    ASSERT_TRUE(frame);
    const Bytes payload = FromHex(packet.payload);
    const View pieces[] = {payload};
    Bytes built;
    BuildTransport(frame->flow, packet.header, pieces, built, packet.id);
    EXPECT_TRUE(
        std::equal(built.begin(), built.end(), frame->transport.begin(), frame->transport.end()));
    BuildFrame(frame->flow, packet.header, pieces, built, packet.id);
    if (!packet.ipv4) {  // captured with UDP checksum 0; ours has one
      ASSERT_EQ(built.size(), bytes.size());
      EXPECT_NE(built[46] | built[47], std::byte{0});
      built[46] = built[47] = std::byte{0};
    }
    EXPECT_EQ(built, bytes);
  }
}

TEST(Frame, RealPacketsAreVerifiedFromTheirTransportPart) {
  for (const TestPacket& packet : TestPackets()) {
    SCOPED_TRACE(packet.name);
    const Bytes bytes = FromHex(packet.hex);
    const std::optional<Frame> frame = ParseFrame(bytes);
    ASSERT_TRUE(frame);
    EXPECT_EQ(VerifyTransport(frame->flow, frame->transport), packet.id == 0);
    const IcrcCheck check = CheckTransport(frame->flow, frame->transport);
    EXPECT_EQ(check.proof, packet.id == 0 ? IcrcProof::kFull : IcrcProof::kRecovered);
    EXPECT_EQ(check.id, packet.id);
  }
}

TEST(Frame, RoundTripsForEverySizeAndBothVersions) {
  for (const Flow& flow : {Ipv4Flow(), Ipv6Flow()}) {
    Bytes built;
    for (size_t size : {0U, 1U, 2U, 3U, 4U, 37U, 1024U, 4095U, 4096U, 3U, 0U}) {
      SCOPED_TRACE(size);
      const Bytes data = Data(size);
      const View pieces[] = {View(data).first(size / 3), View(), View(data).subspan(size / 3)};
      BuildFrame(flow, SendOnly(size), pieces, built);
      EXPECT_TRUE(VerifyIcrc(built));
      EXPECT_EQ(CheckIcrcWithoutId(built).proof, IcrcProof::kFull);
      const std::optional<Frame> frame = ParseFrame(built);
      ASSERT_TRUE(frame);
      EXPECT_EQ(frame->flow, flow);
      EXPECT_EQ(frame->ipv4_id, 0);
      EXPECT_EQ(frame->transport.size() % 4, 0U);
      EXPECT_TRUE(VerifyTransport(flow, frame->transport));
      Header header;
      View payload;
      ASSERT_EQ(
          Decode(frame->transport.first(frame->transport.size() - kIcrcBytes), header, payload),
          DecodeResult::kOk);
      EXPECT_EQ(Bytes(payload.begin(), payload.end()), data);
      Bytes transport = Data(10000);  // what was there before must not matter
      BuildTransport(flow, SendOnly(size), pieces, transport);
      EXPECT_TRUE(std::equal(transport.begin(), transport.end(), frame->transport.begin(),
                             frame->transport.end()));
    }
  }
}

TEST(Frame, BuildingAgainAllocatesNothing) {
  const Bytes data = Data(1024);
  const View pieces[] = {data};
  Bytes built;
  BuildFrame(Ipv6Flow(), SendOnly(1024), pieces, built);
  const std::byte* const before = built.data();
  BuildFrame(Ipv4Flow(), SendOnly(1024), pieces, built);
  EXPECT_EQ(built.data(), before);
}

TEST(Frame, ChecksumsAreRight) {
  for (size_t size : {0U, 5U, 1024U}) {
    const Bytes data = Data(size);
    const View pieces[] = {data};
    Bytes built;
    BuildFrame(Ipv4Flow(), SendOnly(size), pieces, built);
    EXPECT_EQ(Fold(PlainSum(View(built).first(20))), 0xffffU);
    EXPECT_EQ(built[26] | built[27], std::byte{0});  // no UDP checksum
    BuildFrame(Ipv6Flow(), SendOnly(size), pieces, built);
    const View addresses = View(built).subspan(8, 32);
    const View udp = View(built).subspan(40);
    const auto length = static_cast<uint32_t>(udp.size());
    EXPECT_EQ(Fold(PlainSum(addresses) + length + 17 + PlainSum(udp)), 0xffffU);
  }
}

// A checksum of 0 says "none", so the other zero of one's complement is sent in its place.
TEST(Frame, ZeroChecksumIsSentAsOnes) {
  int seen = 0;
  Bytes built;
  for (uint32_t psn = 0; psn < 0x40000; ++psn) {
    Header header = SendOnly(0);
    header.psn = psn;
    BuildFrame(Ipv6Flow(), header, {}, built);
    ASSERT_NE(built[46] | built[47], std::byte{0}) << psn;
    if ((built[46] & built[47]) == std::byte{0xff}) ++seen;
  }
  EXPECT_GT(seen, 0);
}

TEST(Frame, CallersPadIsTaken) {
  const Bytes data = Data(5);
  const View pieces[] = {data};
  Header header = SendOnly(5);
  EXPECT_EQ(header.pad, 3);
  header.pad = 1;
  Bytes built;
  BuildTransport(Ipv4Flow(), header, pieces, built);
  EXPECT_EQ(built.size(), kBthBytes + 5 + 1 + kIcrcBytes);
  EXPECT_TRUE(VerifyTransport(Ipv4Flow(), built));
  EXPECT_EQ(PadFor(0), 0);
  EXPECT_EQ(PadFor(4096), 0);
  EXPECT_EQ(PadFor(4093), 3);
}

TEST(Frame, SegmentsOfAnOffloadedSendAreCountedById) {
  Bytes built;
  for (uint16_t id : {uint16_t{1}, uint16_t{2}, uint16_t{63}}) {
    BuildTransport(Ipv4Flow(), SendOnly(0), {}, built, id);
    EXPECT_FALSE(VerifyTransport(Ipv4Flow(), built));
    const IcrcCheck check = CheckTransport(Ipv4Flow(), built);
    EXPECT_EQ(check.proof, IcrcProof::kRecovered);
    EXPECT_EQ(check.id, id);
    EXPECT_TRUE(check.dont_fragment);
  }
}

TEST(Frame, AnotherFlowDoesNotVerify) {
  for (const Flow& flow : {Ipv4Flow(), Ipv6Flow()}) {
    Bytes built;
    BuildTransport(flow, SendOnly(0), {}, built);
    Flow other = flow;
    other.source_port ^= 1;
    EXPECT_EQ(CheckTransport(other, built).proof, IcrcProof::kBad);
    other = flow;
    other.source[15] ^= 1;
    EXPECT_EQ(CheckTransport(other, built).proof, IcrcProof::kBad);
    other = flow;
    std::swap(other.source, other.destination);
    // The CRC does see an exchange, although the UDP checksum would not.
    EXPECT_EQ(CheckTransport(other, built).proof, IcrcProof::kBad);
    other = flow;  // what routers may change
    other.hop_limit = 1;
    other.traffic_class ^= 3;
    other.flow_label ^= 1;
    EXPECT_TRUE(VerifyTransport(other, built));
  }
}

TEST(Frame, EverySingleBitOfTheTransportPartIsChecked) {
  for (const Flow& flow : {Ipv4Flow(), Ipv6Flow()}) {
    const Bytes data = Data(37);
    const View pieces[] = {data};
    Bytes built;
    BuildTransport(flow, SendOnly(37), pieces, built);
    for (size_t bit = 0; bit < built.size() * 8; ++bit) {
      const std::byte one = std::byte{1} << (bit % 8);
      built[bit / 8] ^= one;
      EXPECT_EQ(VerifyTransport(flow, built), bit / 8 == 4) << bit;
      EXPECT_EQ(CheckTransport(flow, built).proof != IcrcProof::kBad, bit / 8 == 4) << bit;
      built[bit / 8] ^= one;
    }
  }
}

TEST(Frame, TransportPartsOfAnySizeAreSafe) {
  const Bytes bytes(70000);
  for (size_t size : {0U, 1U, 11U, 12U, 15U, 16U, 65507U, 65508U, 70000U}) {
    EXPECT_FALSE(VerifyTransport(Ipv4Flow(), View(bytes).first(size)));
    EXPECT_FALSE(VerifyTransport(Ipv6Flow(), View(bytes).first(size)));
    EXPECT_NE(CheckTransport(Ipv4Flow(), View(bytes).first(size)).proof, IcrcProof::kFull);
  }
}

// Sets a byte of a good IPv4 packet and repairs the header checksum.
bool ParsesWith(size_t at, int value) {
  Bytes bytes;
  BuildFrame(Ipv4Flow(), SendOnly(0), {}, bytes);
  bytes[at] = static_cast<std::byte>(value);
  bytes[10] = bytes[11] = std::byte{0};
  const uint32_t checksum = ~Fold(PlainSum(View(bytes).first(20)));
  bytes[10] = static_cast<std::byte>(checksum >> 8);
  bytes[11] = static_cast<std::byte>(checksum);
  return ParseFrame(bytes).has_value();
}

TEST(ParseFrame, RefusesWhatAnnexA17WantsDropped) {
  EXPECT_TRUE(ParsesWith(1, 0xff));   // TOS
  EXPECT_TRUE(ParsesWith(4, 0x12));   // any ID
  EXPECT_TRUE(ParsesWith(8, 1));      // TTL
  EXPECT_FALSE(ParsesWith(0, 0x46));  // options
  EXPECT_FALSE(ParsesWith(0, 0x44));
  EXPECT_FALSE(ParsesWith(0, 0x65));
  EXPECT_FALSE(ParsesWith(6, 0x00));  // no DF
  EXPECT_FALSE(ParsesWith(6, 0x60));  // more fragments
  EXPECT_FALSE(ParsesWith(6, 0xc0));  // reserved bit
  EXPECT_FALSE(ParsesWith(7, 1));     // fragment offset
  EXPECT_FALSE(ParsesWith(9, 6));     // TCP
  EXPECT_FALSE(ParsesWith(3, 43));    // IP length too short for UDP, then too long
  EXPECT_FALSE(ParsesWith(3, 45));
  EXPECT_FALSE(ParsesWith(23, 0xb8));  // destination port
  EXPECT_FALSE(ParsesWith(25, 23));    // UDP length
  EXPECT_FALSE(ParseFrame(FromHex(kWrongIdPacket)));
}

TEST(ParseFrame, RefusesAWrongHeaderChecksum) {
  Bytes bytes = FromHex(TestPackets()[2].hex);
  bytes[11] ^= std::byte{1};
  EXPECT_FALSE(ParseFrame(bytes));
}

TEST(ParseFrame, IgnoresEthernetPadding) {
  for (const TestPacket& packet : TestPackets()) {
    Bytes bytes = FromHex(packet.hex);
    const size_t transport = ParseFrame(bytes)->transport.size();
    bytes.resize(bytes.size() + 2);
    ASSERT_TRUE(ParseFrame(bytes)) << packet.name;
    EXPECT_EQ(ParseFrame(bytes)->transport.size(), transport) << packet.name;
  }
}

TEST(ParseFrame, EveryTruncationIsRefused) {
  for (const TestPacket& packet : TestPackets()) {
    const Bytes bytes = FromHex(packet.hex);
    for (size_t length = 0; length < bytes.size(); ++length) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_FALSE(ParseFrame(cut)) << packet.name << " " << length;
    }
  }
}

TEST(ParseFrame, RefusesIpv6ExtensionHeadersAndMappedAddresses) {
  Bytes good;
  BuildFrame(Ipv6Flow(), SendOnly(0), {}, good);
  ASSERT_TRUE(ParseFrame(good));
  Bytes bytes = good;
  bytes[6] = std::byte{44};  // fragment header
  EXPECT_FALSE(ParseFrame(bytes));
  bytes = good;
  for (size_t at : {8U, 24U}) {
    std::fill_n(bytes.begin() + at, 10, std::byte{0});
    std::fill_n(bytes.begin() + at + 10, 2, std::byte{0xff});
  }
  EXPECT_FALSE(ParseFrame(bytes));
}

}  // namespace
}  // namespace verbscope::soft
