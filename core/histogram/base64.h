// Base64 as RFC 4648 section 4 defines it, strict: the standard alphabet, padding required, no line
// breaks, no set bits behind the data. Pure functions, any thread.
#ifndef VERBSCOPE_CORE_HISTOGRAM_BASE64_H_
#define VERBSCOPE_CORE_HISTOGRAM_BASE64_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace verbscope {

std::string EncodeBase64(std::span<const uint8_t> bytes);

// nullopt if `text` is anything but the one encoding of some bytes. Allocates 3/4 of text.size().
std::optional<std::vector<uint8_t>> DecodeBase64(std::string_view text);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_HISTOGRAM_BASE64_H_
