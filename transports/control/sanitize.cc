#include "transports/control/sanitize.h"

#include <cstdint>

namespace verbscope {
namespace {

struct Character {
  uint32_t code_point = 0;
  size_t bytes = 0;  // 0: no valid UTF-8 starts here
};

uint8_t ByteAt(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
Character Decode(std::string_view text) {
  const uint8_t lead = ByteAt(text, 0);
  if (lead < 0x80) return {lead, 1};
  size_t bytes = 0;
  uint32_t code_point = 0;
  uint32_t smallest = 0;
  if ((lead & 0xe0) == 0xc0) {
    bytes = 2, code_point = lead & 0x1fu, smallest = 0x80;
  } else if ((lead & 0xf0) == 0xe0) {
    bytes = 3, code_point = lead & 0x0fu, smallest = 0x800;
  } else if ((lead & 0xf8) == 0xf0) {
    bytes = 4, code_point = lead & 0x07u, smallest = 0x10000;
  }
  if (bytes == 0 || text.size() < bytes) return {};
  for (size_t i = 1; i < bytes; ++i) {
    if ((ByteAt(text, i) & 0xc0) != 0x80) return {};
    code_point = (code_point << 6) | (ByteAt(text, i) & 0x3fu);
  }
  const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
  if (code_point < smallest || surrogate || code_point > 0x10ffff) return {};
  return {code_point, bytes};
}

bool IsDropped(uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c <= 0x9f)) return true;
  // Marks, separators and overrides that change the direction or the lines of what follows.
  if (c == 0x200e || c == 0x200f || c == 0x061c || c == 0xfeff) return true;
  return (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string Sanitize(std::string_view text, size_t max_bytes) {
  std::string out;
  while (!text.empty() && out.size() < max_bytes) {
    const Character c = Decode(text);
    if (c.bytes == 0) {
      out += '?';
      text.remove_prefix(1);
      continue;
    }
    if (c.code_point == '\n' || c.code_point == '\t') {
      out += ' ';
    } else if (!IsDropped(c.code_point)) {
      if (out.size() + c.bytes > max_bytes) break;
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

}  // namespace verbscope
