#include "transports/soft/wire/opcode.h"

namespace verbscope::soft {
namespace {

// Position of a packet in its message. Packets that are alone (requests without payload, the
// acknowledges) count as "only".
constexpr uint16_t kFirst = kOpStarts;
constexpr uint16_t kMiddle = 0;
constexpr uint16_t kLast = kOpEnds;
constexpr uint16_t kOnly = kOpStarts | kOpEnds;

constexpr uint16_t kSend = kOpRequest | kOpSend;
constexpr uint16_t kWrite = kOpRequest | kOpWrite;
constexpr uint16_t kReadResponse = kOpResponse | kOpRead;
constexpr uint16_t kAtomicRequest = kOpRequest | kOpAtomic | kOpAtomicEth | kOnly;

struct Row {
  Opcode opcode;
  PayloadRule payload;
  int flags;
  std::string_view name;
};

// IBTA vol. 1 table 38 (opcodes) and 9.4 (payload of each).
constexpr Row kRows[] = {
    {Opcode::kSendFirst, PayloadRule::kFull, kSend | kFirst, "SEND First"},
    {Opcode::kSendMiddle, PayloadRule::kFull, kSend | kMiddle, "SEND Middle"},
    {Opcode::kSendLast, PayloadRule::kOneToMtu, kSend | kLast, "SEND Last"},
    {Opcode::kSendLastImm, PayloadRule::kOneToMtu, kSend | kLast | kOpImm,
     "SEND Last with Immediate"},
    {Opcode::kSendOnly, PayloadRule::kUpToMtu, kSend | kOnly, "SEND Only"},
    {Opcode::kSendOnlyImm, PayloadRule::kUpToMtu, kSend | kOnly | kOpImm,
     "SEND Only with Immediate"},
    {Opcode::kWriteFirst, PayloadRule::kFull, kWrite | kFirst | kOpReth, "RDMA WRITE First"},
    {Opcode::kWriteMiddle, PayloadRule::kFull, kWrite | kMiddle, "RDMA WRITE Middle"},
    {Opcode::kWriteLast, PayloadRule::kOneToMtu, kWrite | kLast, "RDMA WRITE Last"},
    {Opcode::kWriteLastImm, PayloadRule::kOneToMtu, kWrite | kLast | kOpImm,
     "RDMA WRITE Last with Immediate"},
    {Opcode::kWriteOnly, PayloadRule::kUpToMtu, kWrite | kOnly | kOpReth, "RDMA WRITE Only"},
    {Opcode::kWriteOnlyImm, PayloadRule::kUpToMtu, kWrite | kOnly | kOpReth | kOpImm,
     "RDMA WRITE Only with Immediate"},
    {Opcode::kReadRequest, PayloadRule::kNone, kOpRequest | kOpRead | kOnly | kOpReth,
     "RDMA READ Request"},
    {Opcode::kReadResponseFirst, PayloadRule::kFull, kReadResponse | kFirst | kOpAeth,
     "RDMA READ Response First"},
    {Opcode::kReadResponseMiddle, PayloadRule::kFull, kReadResponse | kMiddle,
     "RDMA READ Response Middle"},
    {Opcode::kReadResponseLast, PayloadRule::kOneToMtu, kReadResponse | kLast | kOpAeth,
     "RDMA READ Response Last"},
    {Opcode::kReadResponseOnly, PayloadRule::kUpToMtu, kReadResponse | kOnly | kOpAeth,
     "RDMA READ Response Only"},
    {Opcode::kAck, PayloadRule::kNone, kOpResponse | kOnly | kOpAeth, "Acknowledge"},
    {Opcode::kAtomicAck, PayloadRule::kNone,
     kOpResponse | kOpAtomic | kOnly | kOpAeth | kOpAtomicAckEth, "ATOMIC Acknowledge"},
    {Opcode::kCompareSwap, PayloadRule::kNone, kAtomicRequest, "Compare and Swap"},
    {Opcode::kFetchAdd, PayloadRule::kNone, kAtomicRequest, "Fetch and Add"},
    {Opcode::kSendLastInvalidate, PayloadRule::kOneToMtu, kSend | kLast | kOpIeth,
     "SEND Last with Invalidate"},
    {Opcode::kSendOnlyInvalidate, PayloadRule::kUpToMtu, kSend | kOnly | kOpIeth,
     "SEND Only with Invalidate"},
};

constexpr uint8_t ExtensionBytes(int flags) {
  int bytes = 0;
  if ((flags & kOpReth) != 0) bytes += 16;
  if ((flags & kOpImm) != 0) bytes += 4;
  if ((flags & kOpAeth) != 0) bytes += 4;
  if ((flags & kOpAtomicEth) != 0) bytes += 28;
  if ((flags & kOpAtomicAckEth) != 0) bytes += 8;
  if ((flags & kOpIeth) != 0) bytes += 4;
  return static_cast<uint8_t>(bytes);
}

constexpr std::array<OpcodeInfo, 256> BuildTable() {
  std::array<OpcodeInfo, 256> table{};
  for (const Row& row : kRows) {
    table[static_cast<uint8_t>(row.opcode)] = {row.name, static_cast<uint16_t>(row.flags),
                                               ExtensionBytes(row.flags), row.payload};
  }
  return table;
}

}  // namespace

constinit const std::array<OpcodeInfo, 256> kOpcodeTable = BuildTable();

bool PayloadFits(PayloadRule rule, uint32_t bytes, uint32_t path_mtu) {
  switch (rule) {
    case PayloadRule::kNone:
      return bytes == 0;
    case PayloadRule::kFull:
      return bytes == path_mtu;
    case PayloadRule::kOneToMtu:
      return bytes >= 1 && bytes <= path_mtu;
    case PayloadRule::kUpToMtu:
      return bytes <= path_mtu;
  }
  return false;
}

}  // namespace verbscope::soft
