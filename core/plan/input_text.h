// Helpers for reading what users and peers wrote: shared by the parsers of this folder only. Free
// functions without state, any thread.
#ifndef VERBSCOPE_CORE_PLAN_INPUT_TEXT_H_
#define VERBSCOPE_CORE_PLAN_INPUT_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace verbscope {

// `text` in quotes for an error message: at most 64 bytes of it, and every byte that is not
// printable ASCII as '?', because it may come from another host and ends on a terminal.
inline std::string Quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 64;
  std::string quoted = "'";
  for (const char c : text.substr(0, kMaxBytes)) quoted += (c >= ' ' && c <= '~') ? c : '?';
  quoted += text.size() > kMaxBytes ? "...'" : "'";
  return quoted;
}

// Reads decimal digits from the front of `text` and removes them. False when there is no digit or
// the number is above 2^64-1.
inline bool TakeDigits(std::string_view& text, uint64_t& value) {
  size_t length = 0;
  value = 0;
  while (length < text.size() && text[length] >= '0' && text[length] <= '9') {
    const auto digit = static_cast<uint64_t>(text[length] - '0');
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
    ++length;
  }
  text.remove_prefix(length);
  return length > 0;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_INPUT_TEXT_H_
