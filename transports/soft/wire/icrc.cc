#include "transports/soft/wire/icrc.h"

#include <libdeflate.h>

#include <algorithm>
#include <array>

#include "transports/soft/wire/byte_order.h"
#include "transports/soft/wire/header.h"

namespace verbscope::soft {
namespace {

constexpr std::byte kOnes{0xff};
constexpr size_t kIpv4IdOffset = 4;
constexpr size_t kIpv4MaskedBytes = kIpv4HeaderBytes + kUdpHeaderBytes + kBthBytes;
static_assert(kMaxMaskedBytes == kIpv6HeaderBytes + kUdpHeaderBytes + kBthBytes);

// ID 0, flags '010' (DF), fragment offset 0, as they stand in the header.
constexpr uint32_t kIdZeroDf = 0x00004000;

// Polynomials over GF(2) modulo the CRC's, in the register's bit order: the top bit is x^0, the
// lowest x^31. kReduction is x^32 in that order.
constexpr uint32_t kReduction = 0xedb88320;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t TimesX(uint32_t a) { return (a >> 1) ^ ((a & 1) != 0 ? kReduction : 0); }

// The constant term of the modulus is 1, so adding the modulus makes any polynomial divisible by x;
// its x^32 comes out as x^31, the lowest bit.
constexpr uint32_t OverX(uint32_t a) {
  return (a & kOne) != 0 ? ((a ^ kReduction) << 1 | 1) : a << 1;
}
static_assert(TimesX(OverX(0x12345678)) == 0x12345678 && OverX(TimesX(kOne | 1)) == (kOne | 1));

constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int i = 0; i < 32; ++i) {
    product ^= b & (0 - (a >> 31));
    a <<= 1;
    b = TimesX(b);
  }
  return product;
}

// x^(-8n) for n = digit * 256^position: a product of two gives any length an IPv4 packet can have.
using Powers = std::array<std::array<uint32_t, 256>, 2>;
constexpr Powers BuildPowers() {
  Powers powers{};
  uint32_t base = kOne;
  for (int i = 0; i < 8; ++i) base = OverX(base);
  for (auto& row : powers) {
    uint32_t power = kOne;
    for (uint32_t& entry : row) {
      entry = power;
      power = Multiply(power, base);
    }
    base = power;
  }
  return powers;
}
constexpr Powers kPowers = BuildPowers();

// Multiplies `a` by x^(-8 * bytes): runs the register backwards over that many bytes of zeros.
uint32_t Rewind(uint32_t a, size_t bytes) {
  const uint32_t low = kPowers[0][bytes & 0xff];
  const size_t high = bytes >> 8 & 0xff;
  return Multiply(a, high == 0 ? low : Multiply(low, kPowers[1][high]));
}

size_t IpVersion(std::span<const std::byte> packet) {
  return packet.empty() ? 0 : std::to_integer<size_t>(packet[0] >> 4);
}

// Bytes of the IP and UDP headers and the BTH; 0: `packet` has not got them.
size_t MaskedBytes(std::span<const std::byte> packet) {
  size_t bytes = 0;
  if (IpVersion(packet) == 6) bytes = kMaxMaskedBytes;
  if (IpVersion(packet) == 4 && packet[0] == std::byte{0x45}) bytes = kIpv4MaskedBytes;
  return packet.size() < bytes ? 0 : bytes;
}

void MaskFields(std::byte* headers, size_t bytes) {
  if (bytes == kIpv4MaskedBytes) {
    headers[1] = kOnes;                 // TOS
    headers[8] = kOnes;                 // TTL
    headers[10] = headers[11] = kOnes;  // header checksum
  } else {
    StoreBe32(headers, LoadBe32(headers) | 0x0fffffff);  // traffic class and flow label
    headers[7] = kOnes;                                  // hop limit
  }
  std::byte* bth = headers + bytes - kBthBytes;
  bth[-2] = bth[-1] = kOnes;  // UDP checksum
  MaskBth(std::span<std::byte, kBthBytes>(bth, kBthBytes));
}

// `packet` without its ICRC. `assume_id`: read the second word of an IPv4 header as kIdZeroDf.
std::optional<uint32_t> Compute(std::span<const std::byte> packet, bool assume_id) {
  const size_t bytes = MaskedBytes(packet);
  if (bytes == 0) return std::nullopt;
  std::array<std::byte, kMaxMaskedBytes> masked;
  std::copy_n(packet.data(), bytes, masked.data());
  if (assume_id && bytes == kIpv4MaskedBytes) StoreBe32(masked.data() + kIpv4IdOffset, kIdZeroDf);
  MaskFields(masked.data(), bytes);
  return ExtendIcrc(ExtendIcrc(kIcrcSeed, std::span(masked).first(bytes)), packet.subspan(bytes));
}

}  // namespace

uint32_t ExtendIcrc(uint32_t icrc, std::span<const std::byte> bytes) {
  return bytes.empty() ? icrc : libdeflate_crc32(icrc, bytes.data(), bytes.size());
}

uint32_t Icrc(std::span<const std::byte> masked, std::span<const std::span<const std::byte>> rest) {
  uint32_t icrc = ExtendIcrc(kIcrcSeed, masked);
  for (std::span<const std::byte> piece : rest) icrc = ExtendIcrc(icrc, piece);
  return icrc;
}

bool MaskHeaders(std::span<std::byte> headers) {
  const size_t bytes = MaskedBytes(headers);
  if (bytes == 0) return false;
  MaskFields(headers.data(), bytes);
  return true;
}

void MaskBth(std::span<std::byte, kBthBytes> bth) {
  bth[4] = kOnes;  // FECN, BECN and reserved bits
}

std::optional<uint32_t> Icrc(std::span<const std::byte> packet) {
  return Compute(packet, /*assume_id=*/false);
}

bool VerifyIcrc(std::span<const std::byte> packet) {
  if (packet.size() < kIcrcBytes) return false;
  const size_t covered = packet.size() - kIcrcBytes;
  const std::optional<uint32_t> icrc = Icrc(packet.first(covered));
  return icrc && *icrc == LoadIcrc(packet.data() + covered);
}

IcrcCheck RecoverId(uint32_t computed, uint32_t received, size_t bytes_after_id) {
  if (computed == received) return {.proof = IcrcProof::kFull, .id = 0, .dont_fragment = true};
  // What must be added to the word of ID, flags and fragment offset, first byte lowest: the two
  // bytes of an ID, and for flags and offset nothing but, perhaps, the loss of DF.
  const uint32_t word = Rewind(computed ^ received, bytes_after_id + sizeof(uint16_t));
  const uint32_t flags = word >> 16;
  if (flags != 0 && flags != 0x40) return {};
  return {.proof = IcrcProof::kRecovered,
          .id = __builtin_bswap16(static_cast<uint16_t>(word)),
          .dont_fragment = flags == 0};
}

IcrcCheck CheckIcrcWithoutId(std::span<const std::byte> packet) {
  if (packet.size() < kIcrcBytes) return {};
  const size_t covered = packet.size() - kIcrcBytes;
  const std::optional<uint32_t> computed = Compute(packet.first(covered), /*assume_id=*/true);
  if (!computed || packet.size() > UINT16_MAX) return {};
  const uint32_t received = LoadIcrc(packet.data() + covered);
  if (IpVersion(packet) == 6) {
    return {.proof = *computed == received ? IcrcProof::kFull : IcrcProof::kBad};
  }
  return RecoverId(*computed, received, covered - kIpv4IdOffset - sizeof(uint16_t));
}

}  // namespace verbscope::soft
