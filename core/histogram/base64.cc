#include "core/histogram/base64.h"

#include <array>
#include <cstddef>

namespace verbscope {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint8_t kInvalid = 0xff;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kInvalid);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<uint8_t>(kAlphabet[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

}  // namespace

std::string EncodeBase64(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < have ? bytes[i + j] : 0u);
    for (size_t j = 0; j < 4; ++j) {
      text += j <= have ? kAlphabet[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::optional<std::vector<uint8_t>> DecodeBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t absent = i + 4 == text.size() ? padding : 0;
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const uint8_t value =
          j < 4 - absent ? kValues[static_cast<uint8_t>(text[i + j])] : uint8_t{0};
      if (value == kInvalid) return std::nullopt;
      group = group << 6 | value;
    }
    // Bits behind the last byte must be 0, or two texts would decode to the same bytes.
    if ((group & ((1u << (8 * absent)) - 1)) != 0) return std::nullopt;
    for (size_t j = 0; j < 3 - absent; ++j) bytes.push_back(group >> (16 - 8 * j) & 0xff);
  }
  return bytes;
}

}  // namespace verbscope
