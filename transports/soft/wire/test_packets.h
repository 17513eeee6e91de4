// Real packets from the IP header to the ICRC, for the tests of this folder: captured from adapters
// and from Linux rxe, or accepted by rxe. Each ICRC was computed again by two other
// implementations.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_WIRE_TEST_PACKETS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_WIRE_TEST_PACKETS_H_

#include <cctype>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transports/soft/wire/header.h"

namespace verbscope::soft {

using Bytes = std::vector<std::byte>;

inline Bytes FromHex(std::string_view text) {
  std::string digits;
  for (char c : text) {
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits.push_back(c);
  }
  Bytes bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    uint8_t value = 0;
    std::from_chars(&digits[i], &digits[i] + 2, value, 16);
    bytes.push_back(std::byte{value});
  }
  return bytes;
}

struct TestPacket {
  const char* name;
  const char* hex;
  bool ipv4;
  uint16_t id;
  bool rc;  // Decode knows it
  uint16_t source_port;
  const char* source;  // GIDs
  const char* destination;
  Header header;
  const char* payload;  // hex, without pad
};

constexpr const char* kRxeData =
    "00070e151c232a31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc";
constexpr const char* kAddress1 = "00000000000000000000ffff0a090001";
constexpr const char* kAddress2 = "00000000000000000000ffff0a090002";
constexpr const char* kFd1 = "fd000009000000000000000000000001";
constexpr const char* kFd2 = "fd000009000000000000000000000002";

inline std::vector<TestPacket> TestPackets() {
  return {
      {"A, an adapter's UC SEND Only",
       "45010040047840004011b4d5c0a80007c0a80007 c00012b7002caca2 2460ffff000000d300cf1710"
       "4630818be28935d90e9a95505401be885e500000 78f353f3",
       true,
       0x0478,
       false,
       0xc000,
       "00000000000000000000ffffc0a80007",
       "00000000000000000000ffffc0a80007",
       {},
       ""},
      {"B, an adapter's CNP",
       "45c2003c718c4000401191610a0011010a001201 000012b700280000 8100ffff4000011800000000"
       "00000000000000000000000000000000 82fd002a",
       true,
       0x718c,
       false,
       0,
       "00000000000000000000ffff0a001101",
       "00000000000000000000ffff0a001201",
       {},
       ""},
      {"C, SEND Only of 37 bytes",
       "450000540b29400040111b5c0a0900010a090002 d22112b700400000 0430ffff0000011180002000"
       "00070e151c232a31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc000000"
       "2e6aae33",
       true,
       0x0b29,
       true,
       0xd221,
       kAddress1,
       kAddress2,
       {.opcode = Opcode::kSendOnly,
        .migration = false,
        .pad = 3,
        .ack_request = true,
        .dest_qpn = 0x111,
        .psn = 0x2000},
       kRxeData},
      {"D, Acknowledge",
       "450000300b3e400040111b6b0a0900010a090002 d66512b7001c0000 1100ffff0000011100001000"
       "1f000001 53dd423b",
       true,
       0x0b3e,
       true,
       0xd665,
       kAddress1,
       kAddress2,
       {.opcode = Opcode::kAck,
        .migration = false,
        .dest_qpn = 0x111,
        .psn = 0x1000,
        .syndrome = 0x1f,
        .msn = 1},
       ""},
      {"E, READ Request",
       "4500003c0b39400040111b640a0900010a090002 d44312b700280000 0c00ffff0000011180002000"
       "000000000000700000000099000005dc c42a81ad",
       true,
       0x0b39,
       true,
       0xd443,
       kAddress1,
       kAddress2,
       {.opcode = Opcode::kReadRequest,
        .migration = false,
        .ack_request = true,
        .dest_qpn = 0x111,
        .psn = 0x2000,
        .address = 0x7000,
        .rkey = 0x99,
        .dma_length = 1500},
       ""},
      {"F, Fetch and Add",
       "450000480b3b400040111b560a0900010a090002 d55412b700340000 1400ffff0000011180002000"
       "00000000000070000000009911223344556677880000000000000000 f7b76fa1",
       true,
       0x0b3b,
       true,
       0xd554,
       kAddress1,
       kAddress2,
       {.opcode = Opcode::kFetchAdd,
        .migration = false,
        .ack_request = true,
        .dest_qpn = 0x111,
        .psn = 0x2000,
        .address = 0x7000,
        .rkey = 0x99,
        .swap_add = 0x1122334455667788},
       ""},
      {"G, WRITE Only of 5 bytes from a UDP socket",
       "4500004400004000401126950a0900020a090001 c12312b700300000 0a70ffff0000001580001000"
       "000056245322c0640000029b00000005 48454c4c4f000000 8d34575c",
       true,
       0,
       true,
       0xc123,
       kAddress2,
       kAddress1,
       {.opcode = Opcode::kWriteOnly,
        .pad = 3,
        .ack_request = true,
        .dest_qpn = 0x15,
        .psn = 0x1000,
        .address = 0x56245322c064,
        .rkey = 0x29b,
        .dma_length = 5},
       "48454c4c4f"},
      {"H, SEND Only of 37 bytes on IPv6",
       "6000000000401140fd000009000000000000000000000001fd000009000000000000000000000002"
       "eddb12b700400000 0430ffff0000011180002000"
       "00070e151c232a31383f464d545b626970777e858c939aa1a8afb6bdc4cbd2d9e0e7eef5fc000000"
       "36b15da3",
       false,
       0,
       true,
       0xeddb,
       kFd1,
       kFd2,
       {.opcode = Opcode::kSendOnly,
        .migration = false,
        .pad = 3,
        .ack_request = true,
        .dest_qpn = 0x111,
        .psn = 0x2000},
       kRxeData},
      {"I, Acknowledge on IPv6 with a flow label from a UDP socket",
       "6007859e001c1140fd000009000000000000000000000002fd000009000000000000000000000001"
       "c12312b7001c0000 1140ffff0000002b00002000 1f000001 7e2855a0",
       false,
       0,
       true,
       0xc123,
       kFd2,
       kFd1,
       {.opcode = Opcode::kAck, .dest_qpn = 0x2b, .psn = 0x2000, .syndrome = 0x1f, .msn = 1},
       ""},
  };
}

// Sent from a socket that lets the kernel choose ID 0x057d and clear DF, with the ICRC for ID 0 and
// DF. rxe gives no answer.
constexpr const char* kWrongIdPacket =
    "45000030057d00004011612c0a0900020a090001 c12312b7001c0000 0440ffff0000001780001000 61626364"
    "d4e18146";

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_WIRE_TEST_PACKETS_H_
