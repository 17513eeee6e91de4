// Big-endian loads and stores at any alignment, for the codecs of this folder only. Each compiles
// to one move and one byte swap. Pure; any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_WIRE_BYTE_ORDER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_WIRE_BYTE_ORDER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace verbscope::soft {

// The ICRC code loads and stores words of the CRC register as they are.
static_assert(std::endian::native == std::endian::little);

inline uint16_t LoadBe16(const std::byte* from) {
  uint16_t value;
  std::memcpy(&value, from, sizeof(value));
  return __builtin_bswap16(value);
}

inline uint32_t LoadBe32(const std::byte* from) {
  uint32_t value;
  std::memcpy(&value, from, sizeof(value));
  return __builtin_bswap32(value);
}

inline uint64_t LoadBe64(const std::byte* from) {
  uint64_t value;
  std::memcpy(&value, from, sizeof(value));
  return __builtin_bswap64(value);
}

inline void StoreBe16(std::byte* to, uint16_t value) {
  value = __builtin_bswap16(value);
  std::memcpy(to, &value, sizeof(value));
}

inline void StoreBe32(std::byte* to, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(to, &value, sizeof(value));
}

inline void StoreBe64(std::byte* to, uint64_t value) {
  value = __builtin_bswap64(value);
  std::memcpy(to, &value, sizeof(value));
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_WIRE_BYTE_ORDER_H_
