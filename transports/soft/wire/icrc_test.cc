#include "transports/soft/wire/icrc.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <random>
#include <vector>

#include "transports/soft/wire/test_packets.h"

namespace verbscope::soft {
namespace {

using View = std::span<const std::byte>;

View WithoutIcrc(const Bytes& packet) { return View(packet).first(packet.size() - kIcrcBytes); }

void Flip(Bytes& packet, size_t bit) { packet[bit / 8] ^= std::byte{1} << (bit % 8); }

// Bits that no ICRC covers, written down apart from the code under test.
bool IsMasked(bool ipv4, size_t bit) {
  const size_t byte = bit / 8;
  if (ipv4) {
    return byte == 1 || byte == 8 || byte == 10 || byte == 11 || byte == 26 || byte == 27 ||
           byte == 32;
  }
  if (byte == 0) return bit % 8 < 4;
  return byte == 1 || byte == 2 || byte == 3 || byte == 7 || byte == 46 || byte == 47 || byte == 52;
}

void SetId(Bytes& packet, uint16_t id, bool dont_fragment) {
  packet[4] = static_cast<std::byte>(id >> 8);
  packet[5] = static_cast<std::byte>(id & 0xff);
  packet[6] = std::byte{dont_fragment ? uint8_t{0x40} : uint8_t{0}};
}

// A packet of any size with the right ICRC.
Bytes MakePacket(size_t size, uint16_t id, bool dont_fragment, std::mt19937& random) {
  Bytes packet(size);
  for (std::byte& b : packet) b = static_cast<std::byte>(random());
  packet[0] = std::byte{0x45};
  packet[7] = std::byte{0};
  SetId(packet, id, dont_fragment);
  StoreIcrc(packet.data() + size - kIcrcBytes, *Icrc(WithoutIcrc(packet)));
  return packet;
}

TEST(Icrc, RealPacketsMatch) {
  for (const TestPacket& packet : TestPackets()) {
    const Bytes bytes = FromHex(packet.hex);
    EXPECT_EQ(Icrc(WithoutIcrc(bytes)), LoadIcrc(bytes.data() + bytes.size() - kIcrcBytes))
        << packet.name;
    EXPECT_TRUE(VerifyIcrc(bytes)) << packet.name;
  }
}

TEST(Icrc, TravelsLeastSignificantByteFirst) {
  std::array<std::byte, 4> bytes;
  StoreIcrc(bytes.data(), 0xf353f378);
  EXPECT_EQ(Bytes(bytes.begin(), bytes.end()), FromHex("78f353f3"));  // packet A
  EXPECT_EQ(LoadIcrc(bytes.data()), 0xf353f378);
}

TEST(Icrc, SeedStandsForEightBytesOfOnes) {
  EXPECT_EQ(ExtendIcrc(0, FromHex("ffffffffffffffff")), kIcrcSeed);
}

TEST(Icrc, EveryCoveredBitMattersAndNoMaskedBitDoes) {
  for (const TestPacket& packet : TestPackets()) {
    Bytes bytes = FromHex(packet.hex);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      Flip(bytes, bit);
      EXPECT_EQ(VerifyIcrc(bytes), IsMasked(packet.ipv4, bit)) << packet.name << " bit " << bit;
      Flip(bytes, bit);
    }
  }
}

TEST(Icrc, PiecesGiveTheSameAsTheWhole) {
  std::mt19937 random(1);
  for (const TestPacket& packet : TestPackets()) {
    const Bytes bytes = FromHex(packet.hex);
    const size_t masked_bytes = packet.ipv4 ? 40 : 60;
    Bytes masked(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(masked_bytes));
    ASSERT_TRUE(MaskHeaders(masked));
    for (int i = 0; i < 50; ++i) {
      std::vector<View> pieces;
      View rest = WithoutIcrc(bytes).subspan(masked_bytes);
      while (!rest.empty()) {
        const size_t take = random() % (rest.size() + 1);  // empty pieces too
        pieces.push_back(rest.first(take));
        rest = rest.subspan(take);
      }
      EXPECT_EQ(Icrc(masked, pieces), *Icrc(WithoutIcrc(bytes))) << packet.name;
    }
  }
}

TEST(Icrc, MaskHeadersSetsTheMaskedBitsOnly) {
  for (const TestPacket& packet : TestPackets()) {
    const Bytes bytes = FromHex(packet.hex);
    Bytes masked = bytes;
    ASSERT_TRUE(MaskHeaders(masked));
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const std::byte one = std::byte{1} << (bit % 8);
      const bool before = (bytes[bit / 8] & one) != std::byte{0};
      const bool after = (masked[bit / 8] & one) != std::byte{0};
      EXPECT_EQ(after, before || IsMasked(packet.ipv4, bit)) << packet.name << " bit " << bit;
    }
  }
}

TEST(Icrc, OtherBytesAreNoPacket) {
  for (const TestPacket& packet : TestPackets()) {
    Bytes bytes = FromHex(packet.hex);
    for (size_t length = 0; length < bytes.size(); ++length) {
      const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_EQ(Icrc(cut).has_value(), length >= (packet.ipv4 ? 40U : 60U)) << length;
      EXPECT_FALSE(VerifyIcrc(cut));
      EXPECT_NE(CheckIcrcWithoutId(cut).proof, IcrcProof::kFull);
    }
    for (int first : {0x00, 0x44, 0x46, 0x4f, 0x55, 0xff}) {  // options, other versions
      bytes[0] = static_cast<std::byte>(first);
      EXPECT_EQ(Icrc(bytes), std::nullopt) << first;
      EXPECT_FALSE(MaskHeaders(bytes));
      EXPECT_EQ(CheckIcrcWithoutId(bytes).proof, IcrcProof::kBad);
    }
  }
}

TEST(RecoverId, FindsTheIdsOfRealPackets) {
  for (const TestPacket& packet : TestPackets()) {
    const bool known = !packet.ipv4 || packet.id == 0;
    Bytes bytes = FromHex(packet.hex);
    // What stands in the header must not be used.
    if (packet.ipv4) SetId(bytes, 0xdead, /*dont_fragment=*/false);
    const IcrcCheck check = CheckIcrcWithoutId(bytes);
    EXPECT_EQ(check.proof, known ? IcrcProof::kFull : IcrcProof::kRecovered) << packet.name;
    EXPECT_EQ(check.id, packet.id) << packet.name;
    EXPECT_TRUE(check.dont_fragment) << packet.name;
  }
}

// The sender's kernel chose another ID than the one that the ICRC is for: whoever sees the IP
// header refuses the packet. Behind a UDP socket it looks like a packet with ID 0.
TEST(RecoverId, PacketWithTheWrongIdIsRefusedByWhoSeesIt) {
  Bytes bytes = FromHex(kWrongIdPacket);
  EXPECT_FALSE(VerifyIcrc(bytes));
  EXPECT_EQ(CheckIcrcWithoutId(bytes).proof, IcrcProof::kFull);
  // Relative to an ICRC for what stands in the header, the missing bits are that ID and DF.
  const uint32_t received = LoadIcrc(bytes.data() + bytes.size() - kIcrcBytes);
  const IcrcCheck difference = RecoverId(received, *Icrc(WithoutIcrc(bytes)), bytes.size() - 10);
  EXPECT_EQ(difference.proof, IcrcProof::kRecovered);
  EXPECT_EQ(difference.id, 0x057d);
  EXPECT_FALSE(difference.dont_fragment);
  // With the ICRC that its header asks for, the ID comes out.
  StoreIcrc(bytes.data() + bytes.size() - kIcrcBytes, *Icrc(WithoutIcrc(bytes)));
  EXPECT_TRUE(VerifyIcrc(bytes));
  const IcrcCheck check = CheckIcrcWithoutId(bytes);
  EXPECT_EQ(check.proof, IcrcProof::kRecovered);
  EXPECT_EQ(check.id, 0x057d);
  EXPECT_FALSE(check.dont_fragment);
}

TEST(RecoverId, EveryIdAndLengthComesBack) {
  std::mt19937 random(2);
  for (size_t size : {44U, 48U, 255U, 256U, 257U, 300U, 512U, 1072U, 4144U, 9000U, 65535U}) {
    for (int i = 0; i < 100; ++i) {
      const auto id = static_cast<uint16_t>(i == 0 ? 0 : i == 1 ? 0xffff : random());
      const bool dont_fragment = i % 2 == 0;
      const IcrcCheck check = CheckIcrcWithoutId(MakePacket(size, id, dont_fragment, random));
      const bool assumed = id == 0 && dont_fragment;
      ASSERT_EQ(check.proof, assumed ? IcrcProof::kFull : IcrcProof::kRecovered) << size;
      EXPECT_EQ(check.id, id);
      EXPECT_EQ(check.dont_fragment, dont_fragment);
    }
  }
}

TEST(RecoverId, EverySingleBitErrorIsSeen) {
  for (const TestPacket& packet : TestPackets()) {
    Bytes bytes = FromHex(packet.hex);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const bool unknown = packet.ipv4 && bit / 8 >= 4 && bit / 8 < 8;
      Flip(bytes, bit);
      const bool good = CheckIcrcWithoutId(bytes).proof != IcrcProof::kBad;
      EXPECT_EQ(good, unknown || IsMasked(packet.ipv4, bit)) << packet.name << " bit " << bit;
      Flip(bytes, bit);
    }
  }
}

TEST(RecoverId, RandomIcrcPassesAboutOnceIn32768) {
  std::mt19937 random(3);
  constexpr int kTries = 1 << 20;
  int passed = 0;
  for (int i = 0; i < kTries; ++i) {
    const uint32_t computed = 0x12345678;
    if (RecoverId(computed, static_cast<uint32_t>(random()), 1062).proof != IcrcProof::kBad) {
      ++passed;
    }
  }
  EXPECT_GT(passed, 8);  // 32 expected, deviation 5.7
  EXPECT_LT(passed, 64);
}

TEST(RecoverId, RandomBytesAreSafe) {
  std::mt19937 random(4);
  for (int i = 0; i < 100000; ++i) {
    Bytes bytes(random() % 100);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (!bytes.empty()) bytes[0] = i % 2 == 0 ? std::byte{0x45} : std::byte{0x60};
    EXPECT_NE(CheckIcrcWithoutId(bytes).proof, IcrcProof::kFull);
  }
}

}  // namespace
}  // namespace verbscope::soft
