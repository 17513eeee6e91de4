// The immediate values of a verified exchange: each carries the number of its message and check
// bits, and no two bytes of it are equal, so that a reversed byte order, another message's value or
// a flipped bit is told apart from the right one.
//
// Byte k from the most significant one on has k in its upper two bits and six bits of payload in
// the rest: 16 bits of the number, then 8 check bits over number and direction. The first two
// values of each direction are 0 and 0xFFFFFFFF instead, which no such scheme would cover.
//
// Values are numbers in host order; ibv_send_wr and ibv_wc hold them in network order. The one
// conversion each way is ToWire and FromWire. Pure functions.
#ifndef VERBSCOPE_CORE_SCENARIO_IMM_VALUE_H_
#define VERBSCOPE_CORE_SCENARIO_IMM_VALUE_H_

#include <arpa/inet.h>
#include <linux/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace verbscope {

enum class Direction : uint8_t { kRequest, kAnswer };

// Of message `number` of a direction, counted from 0. Numbers repeat after 65,536.
uint32_t ImmediateOf(uint64_t number, Direction direction);

// The number (modulo 65,536) of the message whose immediate this is; none for a value of no
// message.
std::optional<uint16_t> NumberOf(uint32_t immediate, Direction direction);

inline __be32 ToWire(uint32_t immediate) { return htonl(immediate); }
inline uint32_t FromWire(__be32 immediate) { return ntohl(immediate); }

// What is wrong with `got` where `wanted` should be: "byte order swapped", "that of message 18", …
std::string ExplainImmediate(uint32_t got, uint32_t wanted, Direction direction);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_IMM_VALUE_H_
