#include "transports/soft/wire/header.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "transports/soft/wire/test_packets.h"

namespace verbscope::soft {
namespace {

constexpr std::byte kSentinel{0xa5};
using View = std::span<const std::byte>;

// All that Encode reads for the opcode, and nothing else.
void ExpectSame(const Header& a, const Header& b) {
  const OpcodeInfo& info = Info(a.opcode);
  EXPECT_EQ(a.opcode, b.opcode);
  EXPECT_EQ(a.solicited, b.solicited);
  EXPECT_EQ(a.migration, b.migration);
  EXPECT_EQ(a.pad, b.pad);
  EXPECT_EQ(a.ack_request, b.ack_request);
  EXPECT_EQ(a.pkey, b.pkey);
  EXPECT_EQ(a.dest_qpn, b.dest_qpn);
  EXPECT_EQ(a.psn, b.psn);
  if (info.Is(kOpAeth)) {
    EXPECT_EQ(a.syndrome, b.syndrome);
    EXPECT_EQ(a.msn, b.msn);
  }
  if (info.Is(kOpReth | kOpAtomicEth)) {
    EXPECT_EQ(a.address, b.address);
    EXPECT_EQ(a.rkey, b.rkey);
  }
  if (info.Is(kOpReth)) {
    EXPECT_EQ(a.dma_length, b.dma_length);
  }
  if (info.Is(kOpAtomicEth)) {
    EXPECT_EQ(a.swap_add, b.swap_add);
    EXPECT_EQ(a.compare, b.compare);
  }
  if (info.Is(kOpAtomicAckEth)) {
    EXPECT_EQ(a.original, b.original);
  }
  if (info.Is(kOpImm)) {
    EXPECT_EQ(a.immediate, b.immediate);
  }
  if (info.Is(kOpIeth)) {
    EXPECT_EQ(a.invalidate_rkey, b.invalidate_rkey);
  }
}

Header RandomHeader(Opcode opcode, std::mt19937_64& random) {
  Header header;
  header.opcode = opcode;
  header.solicited = random() % 2 == 0;
  header.migration = random() % 2 == 0;
  header.pad = static_cast<uint8_t>(random() % 4);
  header.ack_request = random() % 2 == 0;
  header.pkey = random() % 2 == 0 ? kDefaultPkey : 0x7fff;
  header.dest_qpn = static_cast<uint32_t>(2 + random() % 0xfffffd);
  header.psn = static_cast<uint32_t>(random() & 0xffffff);
  header.syndrome = static_cast<uint8_t>(random());
  header.msn = static_cast<uint32_t>(random() & 0xffffff);
  header.address = random();
  header.rkey = static_cast<uint32_t>(random());
  header.dma_length = static_cast<uint32_t>(random());
  header.swap_add = random();
  header.compare = random();
  header.original = random();
  header.immediate = static_cast<uint32_t>(random());
  header.invalidate_rkey = static_cast<uint32_t>(random());
  return header;
}

std::vector<Opcode> AllOpcodes() {
  std::vector<Opcode> opcodes;
  for (int byte = 0; byte < 256; ++byte) {
    if (Info(static_cast<uint8_t>(byte)).valid()) opcodes.push_back(static_cast<Opcode>(byte));
  }
  return opcodes;
}

Bytes Encoded(const Header& header) {
  Bytes out(kMaxHeaderBytes);
  out.resize(Encode(header, out.data()));
  return out;
}

DecodeResult DecodeAll(View bytes) {
  Header header;
  View payload;
  return Decode(bytes, header, payload);
}

TEST(Header, RealPacketsDecodeAndEncodeToTheSameBytes) {
  for (const TestPacket& packet : TestPackets()) {
    SCOPED_TRACE(packet.name);
    const Bytes bytes = FromHex(packet.hex);
    const size_t outer = packet.ipv4 ? 28 : 48;
    const View transport = View(bytes).subspan(outer, bytes.size() - outer - kIcrcBytes);
    if (!packet.rc) {
      EXPECT_EQ(DecodeAll(transport), DecodeResult::kUnknownOpcode);
      continue;
    }
    Header header;
    View payload;
    ASSERT_EQ(Decode(transport, header, payload), DecodeResult::kOk);
    ExpectSame(packet.header, header);
    EXPECT_EQ(Bytes(payload.begin(), payload.end()), FromHex(packet.payload));
    Bytes again = Encoded(header);
    again.insert(again.end(), payload.begin(), payload.end());
    again.insert(again.end(), header.pad, std::byte{0});
    EXPECT_EQ(again, Bytes(transport.begin(), transport.end()));
  }
}

// A UC packet has the layout of the RC packet with the same low bits, so it can serve as one.
TEST(Header, FieldsOfAnAdaptersPacket) {
  Bytes bytes = FromHex(TestPackets()[0].hex);
  bytes[28] = std::byte{0x04};
  Header header;
  View payload;
  ASSERT_EQ(Decode(View(bytes).subspan(28, bytes.size() - 32), header, payload), DecodeResult::kOk);
  ExpectSame(header, {.opcode = Opcode::kSendOnly, .pad = 2, .dest_qpn = 0xd3, .psn = 0xcf1710});
  EXPECT_EQ(payload.size(), 18U);
}

TEST(Header, EveryOpcodeRoundTripsWithRandomFields) {
  std::mt19937_64 random(1);
  for (Opcode opcode : AllOpcodes()) {
    SCOPED_TRACE(Info(opcode).name);
    for (int i = 0; i < 200; ++i) {
      const Header header = RandomHeader(opcode, random);
      Bytes bytes = Encoded(header);
      ASSERT_EQ(bytes.size(), kBthBytes + Info(opcode).extension_bytes);
      const size_t head = bytes.size();
      const size_t data = random() % 9;
      bytes.resize(head + data + header.pad, kSentinel);
      Header one;
      Header two;
      View payload_one;
      View payload_two;
      ASSERT_EQ(Decode(bytes, one, payload_one), DecodeResult::kOk);
      ExpectSame(header, one);
      EXPECT_EQ(payload_one.data(), bytes.data() + head);
      EXPECT_EQ(payload_one.size(), data);
      const View whole(bytes);
      ASSERT_EQ(Decode(whole.first(head), whole.subspan(head), two, payload_two),
                DecodeResult::kOk);
      ExpectSame(header, two);
      EXPECT_EQ(payload_two.data(), payload_one.data());
      EXPECT_EQ(payload_two.size(), payload_one.size());
    }
  }
}

TEST(Header, EncodeWritesNothingPastItsRoomAndNoReservedBits) {
  Header header;
  header.pad = 0xff;  // fields wider than on the wire do not spill into their neighbours
  header.dest_qpn = 0xff000011;
  header.psn = 0xff000022;
  header.msn = 0xff000033;
  for (Opcode opcode : AllOpcodes()) {
    header.opcode = opcode;
    std::array<std::byte, kMaxHeaderBytes + 8> out;
    out.fill(kSentinel);
    const size_t bytes = Encode(header, out.data());
    ASSERT_LE(bytes, kMaxHeaderBytes);
    EXPECT_TRUE(std::all_of(out.begin() + kMaxHeaderBytes, out.end(),
                            [](std::byte b) { return b == kSentinel; }));
    EXPECT_EQ(out[1], std::byte{0x70});
    EXPECT_EQ(out[4], std::byte{0});
    EXPECT_EQ(out[7], std::byte{0x11});
    EXPECT_EQ(out[8], std::byte{0});
    EXPECT_EQ(out[11], std::byte{0x22});
    if (Info(opcode).Is(kOpAeth)) {
      EXPECT_EQ(out[12], std::byte{0});
    }
  }
}

TEST(Header, DecodeLeavesFieldsWithoutHeaderAlone) {
  Header header{.syndrome = 1, .msn = 2, .address = 3, .rkey = 4, .dma_length = 5, .swap_add = 6};
  View payload;
  ASSERT_EQ(Decode(Encoded({.dest_qpn = 9}), header, payload), DecodeResult::kOk);
  EXPECT_EQ(header.syndrome, 1);
  EXPECT_EQ(header.msn, 2U);
  EXPECT_EQ(header.address, 3U);
  EXPECT_EQ(header.rkey, 4U);
  EXPECT_EQ(header.dma_length, 5U);
  EXPECT_EQ(header.swap_add, 6U);
}

TEST(Header, ImmediateKeepsItsBytes) {
  Header header{.opcode = Opcode::kWriteOnlyImm, .dest_qpn = 9};
  const Bytes data = FromHex("01020304");
  std::memcpy(&header.immediate, data.data(), data.size());
  const Bytes bytes = Encoded(header);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), bytes.begin() + 28));
}

TEST(Decode, EveryTruncationOfEveryOpcodeIsRefused) {
  for (Opcode opcode : AllOpcodes()) {
    SCOPED_TRACE(Info(opcode).name);
    for (uint8_t pad = 0; pad < 4; ++pad) {
      const Bytes head = Encoded({.opcode = opcode, .pad = pad, .dest_qpn = 9});
      Bytes whole = head;
      whole.resize(head.size() + pad);
      EXPECT_EQ(DecodeAll(whole), DecodeResult::kOk);
      for (size_t length = 0; length < whole.size(); ++length) {
        // Its own allocation: a read past the end is seen by the address sanitizer.
        const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        EXPECT_EQ(DecodeAll(cut), DecodeResult::kTruncated) << length;
      }
    }
  }
}

TEST(Decode, SplitFormWantsTheExactHeadersAndThePad) {
  for (Opcode opcode : AllOpcodes()) {
    SCOPED_TRACE(Info(opcode).name);
    const Bytes head = Encoded({.opcode = opcode, .pad = 2, .dest_qpn = 9});
    Header header;
    View payload;
    for (size_t length = 0; length <= kMaxHeaderBytes + 4; ++length) {
      Bytes cut = head;
      cut.resize(length);
      const DecodeResult result = Decode(cut, FromHex("0000"), header, payload);
      EXPECT_EQ(result == DecodeResult::kOk, length == head.size()) << length;
    }
    EXPECT_EQ(Decode(head, FromHex("00"), header, payload), DecodeResult::kTruncated);
    EXPECT_EQ(Decode(head, View(), header, payload), DecodeResult::kTruncated);
  }
}

TEST(Decode, RefusesWhatBreaksTheFixedRules) {
  const Bytes good = Encoded({.dest_qpn = 9});
  const auto with = [&good](size_t at, int value) {
    Bytes bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    return DecodeAll(bytes);
  };
  EXPECT_EQ(DecodeAll(good), DecodeResult::kOk);
  for (int opcode : {0x15, 0x18, 0x1c, 0x24, 0x64, 0x81, 0xff}) {
    EXPECT_EQ(with(0, opcode), DecodeResult::kUnknownOpcode) << opcode;
  }
  for (int version = 1; version < 16; ++version) {
    EXPECT_EQ(with(1, 0x40 | version), DecodeResult::kBadVersion) << version;
  }
  EXPECT_EQ(with(2, 0x7f), DecodeResult::kOk);
  EXPECT_EQ(with(2, 0x80), DecodeResult::kBadPkey);
  EXPECT_EQ(with(3, 0xfe), DecodeResult::kBadPkey);
  EXPECT_EQ(with(7, 0), DecodeResult::kBadQpn);
  EXPECT_EQ(with(7, 1), DecodeResult::kBadQpn);
  EXPECT_EQ(with(7, 2), DecodeResult::kOk);
  EXPECT_EQ(DecodeAll(Encoded({.dest_qpn = 0xffffff})), DecodeResult::kBadQpn);
  EXPECT_EQ(with(4, 0xff), DecodeResult::kOk);  // FECN, BECN and reserved: ignored
  EXPECT_EQ(with(8, 0x7f), DecodeResult::kOk);
}

TEST(Decode, RandomBytesAreSafe) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    Bytes bytes(random() % 64);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (!bytes.empty()) bytes[0] &= std::byte{0x1f};
    if (bytes.size() > 3 && i % 2 == 0) {
      bytes[1] &= std::byte{0xf0};
      bytes[2] = bytes[3] = std::byte{0xff};
    }
    Header header;
    View payload;
    if (Decode(bytes, header, payload) != DecodeResult::kOk) continue;
    EXPECT_EQ(payload.size() + header.pad + kBthBytes + Info(header.opcode).extension_bytes,
              bytes.size());
  }
}

TEST(Decode, EveryResultHasAName) {
  EXPECT_EQ(Name(DecodeResult::kOk), "ok");
  for (int i = 0; i <= static_cast<int>(DecodeResult::kBadQpn); ++i) {
    EXPECT_NE(Name(static_cast<DecodeResult>(i)), "?");
  }
}

}  // namespace
}  // namespace verbscope::soft
