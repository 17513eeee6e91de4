#include "core/scenario/imm_value.h"

#include <fmt/core.h>

#include <bit>

namespace verbscope {
namespace {

uint32_t CheckBits(uint16_t number, Direction direction) {
  uint32_t hash = number + (direction == Direction::kAnswer ? 0x9E3779B1U : 0x7F4A7C15U);
  hash *= 0x85EBCA6BU;
  hash ^= hash >> 13;
  hash *= 0xC2B2AE35U;
  return hash >> 24;
}

uint32_t Encoded(uint16_t number, Direction direction) {
  const uint32_t payload = (uint32_t{number} << 8) | CheckBits(number, direction);
  uint32_t value = 0;
  for (uint32_t byte = 0; byte < 4; ++byte) {
    value = (value << 8) | (byte << 6) | ((payload >> (18 - 6 * byte)) & 0x3F);
  }
  return value;
}

}  // namespace

uint32_t ImmediateOf(uint64_t number, Direction direction) {
  if (number == 0) return 0;
  if (number == 1) return 0xFFFFFFFF;
  return Encoded(static_cast<uint16_t>(number), direction);
}

std::optional<uint16_t> NumberOf(uint32_t immediate, Direction direction) {
  if (immediate == 0) return uint16_t{0};
  if (immediate == 0xFFFFFFFF) return uint16_t{1};
  uint32_t payload = 0;
  for (uint32_t byte = 0; byte < 4; ++byte) {
    payload = (payload << 6) | ((immediate >> (24 - 8 * byte)) & 0x3F);
  }
  const auto number = static_cast<uint16_t>(payload >> 8);
  if (Encoded(number, direction) != immediate) return std::nullopt;
  return number;
}

std::string ExplainImmediate(uint32_t got, uint32_t wanted, Direction direction) {
  if (got == __builtin_bswap32(wanted)) return "byte order swapped";
  if (const auto number = NumberOf(got, direction); number) {
    return fmt::format("it is the immediate of message {}", *number);
  }
  const Direction other =
      direction == Direction::kRequest ? Direction::kAnswer : Direction::kRequest;
  if (NumberOf(got, other)) return "it is an immediate of the other direction";
  const int bits = std::popcount(got ^ wanted);
  return fmt::format("{} bit{} of 32 differ{}", bits, bits == 1 ? "" : "s", bits == 1 ? "s" : "");
}

}  // namespace verbscope
