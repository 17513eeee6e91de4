#include "transports/soft/wire/header.h"

#include <cstring>

#include "transports/soft/wire/byte_order.h"
#include "transports/soft/wire/psn.h"

namespace verbscope::soft {
namespace {

// Second byte of the BTH (IBTA 9.2).
constexpr uint8_t kSolicitedBit = 0x80;
constexpr uint8_t kMigrationBit = 0x40;
constexpr int kPadShift = 4;
constexpr uint8_t kPadMask = 0x03;
constexpr uint8_t kVersionMask = 0x0f;
constexpr uint32_t kAckRequestBit = 0x80000000;

constexpr uint16_t kPartialPkey = 0x7fff;
constexpr uint32_t kQpnMask = 0xffffff;
constexpr uint32_t kMulticastQpn = 0xffffff;
constexpr uint32_t kGsiQpn = 1;

// The headers follow each other in the order of the IBTA's packet formats (9.4); no opcode has both
// a request's and a response's.
void EncodeExtensions(const Header& header, uint16_t flags, std::byte* out) {
  if ((flags & (kOpReth | kOpAtomicEth)) != 0) {
    StoreBe64(out, header.address);
    StoreBe32(out + 8, header.rkey);
    if ((flags & kOpReth) != 0) {
      StoreBe32(out + 12, header.dma_length);
      out += 16;
    } else {
      StoreBe64(out + 12, header.swap_add);
      StoreBe64(out + 20, header.compare);
      return;
    }
  }
  if ((flags & kOpAeth) != 0) {
    StoreBe32(out, uint32_t{header.syndrome} << 24 | (header.msn & kPsnMask));
    out += 4;
  }
  if ((flags & kOpAtomicAckEth) != 0) StoreBe64(out, header.original);
  if ((flags & kOpImm) != 0) std::memcpy(out, &header.immediate, sizeof(header.immediate));
  if ((flags & kOpIeth) != 0) StoreBe32(out, header.invalidate_rkey);
}

// The mirror image of EncodeExtensions; the caller has checked that all of them are there.
void DecodeExtensions(const std::byte* in, uint16_t flags, Header& header) {
  if ((flags & (kOpReth | kOpAtomicEth)) != 0) {
    header.address = LoadBe64(in);
    header.rkey = LoadBe32(in + 8);
    if ((flags & kOpReth) != 0) {
      header.dma_length = LoadBe32(in + 12);
      in += 16;
    } else {
      header.swap_add = LoadBe64(in + 12);
      header.compare = LoadBe64(in + 20);
      return;
    }
  }
  if ((flags & kOpAeth) != 0) {
    const uint32_t aeth = LoadBe32(in);
    header.syndrome = static_cast<uint8_t>(aeth >> 24);
    header.msn = aeth & kPsnMask;
    in += 4;
  }
  if ((flags & kOpAtomicAckEth) != 0) header.original = LoadBe64(in);
  if ((flags & kOpImm) != 0) std::memcpy(&header.immediate, in, sizeof(header.immediate));
  if ((flags & kOpIeth) != 0) header.invalidate_rkey = LoadBe32(in);
}

// The first two words of a BTH as one number: opcode, flags, P_Key, (reserved), destination QP.
DecodeResult CheckBth(uint64_t front, const OpcodeInfo& info) {
  if (!info.valid()) return DecodeResult::kUnknownOpcode;
  if (((front >> 48) & kVersionMask) != 0) return DecodeResult::kBadVersion;
  const auto pkey = static_cast<uint16_t>(front >> 32);
  if (pkey != kDefaultPkey && pkey != kPartialPkey) return DecodeResult::kBadPkey;
  const uint32_t qpn = static_cast<uint32_t>(front) & kQpnMask;
  if (qpn <= kGsiQpn || qpn == kMulticastQpn) return DecodeResult::kBadQpn;
  return DecodeResult::kOk;
}

// `in` holds kBthBytes and the extensions of `info`.
void DecodeFields(const std::byte* in, uint64_t front, const OpcodeInfo& info, Header& header) {
  const auto bits = static_cast<uint8_t>(front >> 48);
  const uint32_t back = LoadBe32(in + 8);
  header.opcode = static_cast<Opcode>(front >> 56);
  header.solicited = (bits & kSolicitedBit) != 0;
  header.migration = (bits & kMigrationBit) != 0;
  header.pad = (bits >> kPadShift) & kPadMask;
  header.ack_request = (back & kAckRequestBit) != 0;
  header.pkey = static_cast<uint16_t>(front >> 32);
  header.dest_qpn = static_cast<uint32_t>(front) & kQpnMask;
  header.psn = back & kPsnMask;
  if (info.extension_bytes != 0) DecodeExtensions(in + kBthBytes, info.flags, header);
}

}  // namespace

size_t Encode(const Header& header, std::byte* out) {
  const OpcodeInfo& info = Info(header.opcode);
  const uint32_t bits = (header.solicited ? kSolicitedBit : 0U) |
                        (header.migration ? kMigrationBit : 0U) |
                        static_cast<uint32_t>(header.pad & kPadMask) << kPadShift;
  StoreBe64(out, uint64_t{static_cast<uint8_t>(header.opcode)} << 56 | uint64_t{bits} << 48 |
                     uint64_t{header.pkey} << 32 | (header.dest_qpn & kQpnMask));
  StoreBe32(out + 8, (header.ack_request ? kAckRequestBit : 0U) | (header.psn & kPsnMask));
  if (info.extension_bytes != 0) EncodeExtensions(header, info.flags, out + kBthBytes);
  return kBthBytes + info.extension_bytes;
}

std::string_view Name(DecodeResult result) {
  switch (result) {
    case DecodeResult::kOk:
      return "ok";
    case DecodeResult::kTruncated:
      return "truncated";
    case DecodeResult::kUnknownOpcode:
      return "unknown opcode";
    case DecodeResult::kBadVersion:
      return "bad transport version";
    case DecodeResult::kBadPkey:
      return "bad P_Key";
    case DecodeResult::kBadQpn:
      return "bad destination QP";
  }
  return "?";
}

DecodeResult Decode(std::span<const std::byte> bytes, Header& header,
                    std::span<const std::byte>& payload) {
  if (bytes.size() < kBthBytes) return DecodeResult::kTruncated;
  const uint64_t front = LoadBe64(bytes.data());
  const OpcodeInfo& info = Info(static_cast<uint8_t>(front >> 56));
  const DecodeResult result = CheckBth(front, info);
  if (result != DecodeResult::kOk) return result;
  const size_t head = kBthBytes + info.extension_bytes;
  const size_t pad = (front >> (48 + kPadShift)) & kPadMask;
  if (bytes.size() < head + pad) return DecodeResult::kTruncated;
  DecodeFields(bytes.data(), front, info, header);
  payload = bytes.subspan(head, bytes.size() - head - pad);
  return DecodeResult::kOk;
}

DecodeResult Decode(std::span<const std::byte> headers, std::span<const std::byte> carried,
                    Header& header, std::span<const std::byte>& payload) {
  if (headers.size() < kBthBytes) return DecodeResult::kTruncated;
  const uint64_t front = LoadBe64(headers.data());
  const OpcodeInfo& info = Info(static_cast<uint8_t>(front >> 56));
  const DecodeResult result = CheckBth(front, info);
  if (result != DecodeResult::kOk) return result;
  const size_t pad = (front >> (48 + kPadShift)) & kPadMask;
  // Longer than exact is as wrong as shorter: the cut between headers and payload is in doubt.
  if (headers.size() != kBthBytes + info.extension_bytes || carried.size() < pad) {
    return DecodeResult::kTruncated;
  }
  DecodeFields(headers.data(), front, info, header);
  payload = carried.first(carried.size() - pad);
  return DecodeResult::kOk;
}

}  // namespace verbscope::soft
