// The transport headers of one packet (BTH and its extensions) in host form, and their codec.
//
// Encode and Decode are the only two places that know byte positions. Decode is fed with bytes from
// outside: it never reads past the span and accepts no packet that breaks the fixed rules (known RC
// opcode, TVer 0, complete headers, room for the pad, P_Key, destination QP not 0 or 1). Rules that
// depend on a QP (PSN, payload against MTU) belong to the engine. Pure; any thread; nothing
// allocates.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_WIRE_HEADER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_WIRE_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "transports/soft/wire/opcode.h"

namespace verbscope::soft {

inline constexpr size_t kBthBytes = 12;
inline constexpr size_t kMaxHeaderBytes = 40;  // BTH and AtomicETH
inline constexpr size_t kIcrcBytes = 4;
inline constexpr uint16_t kDefaultPkey = 0xffff;
inline constexpr uint16_t kRoceUdpPort = 4791;

// A field is meaningful only if the opcode's row in kOpcodeTable has its header; the others are
// neither written by Decode nor read by Encode.
struct Header {
  // BTH. FECN, BECN and the reserved bits are sent as zero and ignored (annex A17).
  Opcode opcode = Opcode::kSendOnly;
  bool solicited = false;
  bool migration = true;  // MigReq: NICs expect 1
  uint8_t pad = 0;        // 0 … 3 zero bytes after the payload
  bool ack_request = false;
  uint16_t pkey = kDefaultPkey;
  uint32_t dest_qpn = 0;  // 24 bits
  uint32_t psn = 0;       // 24 bits
  // AETH
  uint8_t syndrome = 0;
  uint32_t msn = 0;  // 24 bits
  // RETH; AtomicETH shares the first two
  uint64_t address = 0;
  uint32_t rkey = 0;
  uint32_t dma_length = 0;
  // AtomicETH
  uint64_t swap_add = 0;
  uint64_t compare = 0;
  // AtomicAckETH
  uint64_t original = 0;
  // ImmDt: the four bytes as they are, i.e. network order in memory like ibv_send_wr::imm_data
  uint32_t immediate = 0;
  // IETH
  uint32_t invalidate_rkey = 0;
};

// Writes BTH and extensions to `out` (kMaxHeaderBytes of room). Returns the bytes written.
size_t Encode(const Header& header, std::byte* out);

enum class DecodeResult : uint8_t {
  kOk,
  kTruncated,  // headers or pad do not fit
  kUnknownOpcode,
  kBadVersion,  // TVer is not 0
  kBadPkey,     // neither 0xffff nor 0x7fff
  kBadQpn,      // 0 (SMI), 1 (GSI) or the multicast number
};
std::string_view Name(DecodeResult result);

// `bytes`: BTH … pad, without ICRC. On kOk, `payload` is the part after the headers and without the
// pad (a view into `bytes`).
DecodeResult Decode(std::span<const std::byte> bytes, Header& header,
                    std::span<const std::byte>& payload);
// The same for a link that keeps payload elsewhere: `headers` is exactly BTH and extensions,
// `carried` is payload and pad.
DecodeResult Decode(std::span<const std::byte> headers, std::span<const std::byte> carried,
                    Header& header, std::span<const std::byte>& payload);

// AETH syndromes (IBTA table 45).
inline constexpr uint8_t kSyndromeAck = 0x1f;  // credits 31: no limit
inline constexpr uint8_t kSyndromeRnr = 0x20;  // plus the timer code
inline constexpr uint8_t kNakSequence = 0x60;
inline constexpr uint8_t kNakInvalidRequest = 0x61;
inline constexpr uint8_t kNakRemoteAccess = 0x62;
inline constexpr uint8_t kNakRemoteOperation = 0x63;

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_WIRE_HEADER_H_
