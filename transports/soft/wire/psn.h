// Packet sequence numbers: 24 bits, compared as signed 24-bit differences (IBTA 9.7.2): the 2^23
// numbers before a PSN are older, the rest are newer. Pure values; any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_WIRE_PSN_H_
#define VERBSCOPE_TRANSPORTS_SOFT_WIRE_PSN_H_

#include <cstdint>

namespace verbscope::soft {

inline constexpr uint32_t kPsnMask = 0xffffff;

inline constexpr uint32_t PsnAdd(uint32_t psn, uint32_t count) { return (psn + count) & kPsnMask; }

// a - b, from -2^23 to 2^23 - 1.
inline constexpr int32_t PsnDiff(uint32_t a, uint32_t b) {
  return static_cast<int32_t>((a - b) << 8) >> 8;
}

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_WIRE_PSN_H_
