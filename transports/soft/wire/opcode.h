// The RC opcodes of RoCEv2 and, in one table, what each means for the shape of a packet
// (IBTA vol. 1 table 38; facts tried against Linux rxe). Pure data; any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_WIRE_OPCODE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_WIRE_OPCODE_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace verbscope::soft {

enum class Opcode : uint8_t {
  kSendFirst = 0x00,
  kSendMiddle = 0x01,
  kSendLast = 0x02,
  kSendLastImm = 0x03,
  kSendOnly = 0x04,
  kSendOnlyImm = 0x05,
  kWriteFirst = 0x06,
  kWriteMiddle = 0x07,
  kWriteLast = 0x08,
  kWriteLastImm = 0x09,
  kWriteOnly = 0x0a,
  kWriteOnlyImm = 0x0b,
  kReadRequest = 0x0c,
  kReadResponseFirst = 0x0d,
  kReadResponseMiddle = 0x0e,
  kReadResponseLast = 0x0f,
  kReadResponseOnly = 0x10,
  kAck = 0x11,
  kAtomicAck = 0x12,
  kCompareSwap = 0x13,
  kFetchAdd = 0x14,
  kSendLastInvalidate = 0x16,
  kSendOnlyInvalidate = 0x17,
};

// How much payload a packet of this opcode carries.
enum class PayloadRule : uint8_t {
  kNone,      // exactly 0
  kFull,      // exactly the path MTU
  kOneToMtu,  // 1 … path MTU
  kUpToMtu,   // 0 … path MTU
};

// Bits of OpcodeInfo::flags.
enum OpcodeFlag : uint16_t {
  kOpRequest = 1 << 0,   // requester to responder
  kOpResponse = 1 << 1,  // responder to requester
  kOpStarts = 1 << 2,    // first or only packet of a message
  kOpEnds = 1 << 3,      // last or only packet of a message
  kOpSend = 1 << 4,
  kOpWrite = 1 << 5,
  kOpRead = 1 << 6,    // READ request or response
  kOpAtomic = 1 << 7,  // atomic request or acknowledge
  kOpReth = 1 << 8,
  kOpImm = 1 << 9,
  kOpAeth = 1 << 10,
  kOpAtomicEth = 1 << 11,
  kOpAtomicAckEth = 1 << 12,
  kOpIeth = 1 << 13,
};

struct OpcodeInfo {
  std::string_view name;        // "SEND Only with Immediate"; empty: not an RC opcode
  uint16_t flags = 0;           // OpcodeFlag
  uint8_t extension_bytes = 0;  // all headers between BTH and payload
  PayloadRule payload = PayloadRule::kNone;

  constexpr bool valid() const { return !name.empty(); }
  constexpr bool Is(uint16_t flag) const { return (flags & flag) != 0; }
};

// Indexed by the first byte of the BTH.
extern const std::array<OpcodeInfo, 256> kOpcodeTable;

inline const OpcodeInfo& Info(Opcode opcode) { return kOpcodeTable[static_cast<uint8_t>(opcode)]; }
inline const OpcodeInfo& Info(uint8_t opcode) { return kOpcodeTable[opcode]; }

// Whether `bytes` of payload (without pad) are legal for the rule.
bool PayloadFits(PayloadRule rule, uint32_t bytes, uint32_t path_mtu);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_WIRE_OPCODE_H_
