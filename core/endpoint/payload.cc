#include "core/endpoint/payload.h"

namespace verbscope {
namespace {

// Eight pattern bytes at once: the finalizer of SplitMix64 over seed and word index.
uint64_t Word(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Calls f(offset, byte) for each; stops when it returns false.
template <class F>
void ForEach(size_t size, uint64_t seed, F f) {
  for (size_t offset = 0; offset < size; offset += 8) {
    const uint64_t word = Word(seed, offset / 8);
    for (size_t i = 0; i < 8 && offset + i < size; ++i) {
      if (!f(offset + i, static_cast<std::byte>(word >> (8 * i)))) return;
    }
  }
}

}  // namespace

void FillPattern(std::span<std::byte> bytes, uint64_t seed) {
  ForEach(bytes.size(), seed, [&](size_t offset, std::byte value) {
    bytes[offset] = value;
    return true;
  });
}

void FillAgainst(std::span<std::byte> bytes, uint64_t seed) {
  ForEach(bytes.size(), seed, [&](size_t offset, std::byte value) {
    bytes[offset] = ~value;
    return true;
  });
}

std::optional<PayloadMismatch> FindMismatch(std::span<const std::byte> bytes, uint64_t seed) {
  std::optional<PayloadMismatch> found;
  ForEach(bytes.size(), seed, [&](size_t offset, std::byte value) {
    if (bytes[offset] == value) return true;
    found = PayloadMismatch{.offset = offset,
                            .expected = std::to_integer<uint8_t>(value),
                            .got = std::to_integer<uint8_t>(bytes[offset])};
    return false;
  });
  return found;
}

std::optional<PayloadMismatch> FindBrokenGuard(std::span<const std::byte> guard) {
  for (size_t i = 0; i < guard.size(); ++i) {
    if (guard[i] != kGuardByte) {
      return PayloadMismatch{.offset = i,
                             .expected = std::to_integer<uint8_t>(kGuardByte),
                             .got = std::to_integer<uint8_t>(guard[i])};
    }
  }
  return std::nullopt;
}

}  // namespace verbscope
