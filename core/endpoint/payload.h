// The payload of --verify: bytes that depend on a seed and on their position, so that data from
// another place, another message or another run is told from the right data.
//
// Free functions, any thread.
#ifndef VERBSCOPE_CORE_ENDPOINT_PAYLOAD_H_
#define VERBSCOPE_CORE_ENDPOINT_PAYLOAD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace verbscope {

struct PayloadMismatch {
  uint64_t offset = 0;
  uint8_t expected = 0;
  uint8_t got = 0;
};

void FillPattern(std::span<std::byte> bytes, uint64_t seed);
// Every byte differs from FillPattern's: what does not arrive cannot look as if it had.
void FillAgainst(std::span<std::byte> bytes, uint64_t seed);
// The first byte that is not FillPattern's.
std::optional<PayloadMismatch> FindMismatch(std::span<const std::byte> bytes, uint64_t seed);

// What stands behind a buffer and must stay: a device that writes too far is found out.
inline constexpr std::byte kGuardByte{0xc3};
std::optional<PayloadMismatch> FindBrokenGuard(std::span<const std::byte> guard);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_ENDPOINT_PAYLOAD_H_
