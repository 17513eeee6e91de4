// Text from elsewhere made safe: what a peer sends ends on terminals, in logs and in documents.
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/record/record_json.h"

namespace verbscope {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// One well-formed character at the front of a text: Unicode 15, table 3-7.
struct Character {
  char32_t code = 0;
  size_t bytes = 0;
};

std::optional<Character> FirstCharacter(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return Character{lead, 1};
  const size_t bytes = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (bytes == 0 || text.size() < bytes) return std::nullopt;
  auto code = static_cast<char32_t>(lead & (0xFF >> (bytes + 1)));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    code = (code << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return std::nullopt;
  return Character{code, bytes};
}

// Control characters (C0, DEL, C1), line and paragraph separators, and the embeddings, overrides
// and isolates with which a text can show itself in another order than it is.
bool IsHidden(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069) || code == 0x200E || code == 0x200F || code == 0xFEFF;
}

// Calls fn(code, bytes of it) for each character; bytes that are none arrive as U+FFFD, one each.
template <class Fn>
void ForEachCharacter(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const auto character = FirstCharacter(text);
    if (!character) {
      fn(char32_t{0xFFFD}, kReplacement);
      text.remove_prefix(1);
      continue;
    }
    fn(character->code, text.substr(0, character->bytes));
    text.remove_prefix(character->bytes);
  }
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  ForEachCharacter(text, [&valid](char32_t, std::string_view bytes) { valid += bytes; });
  return valid;
}

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string printable;
  bool full = false;
  ForEachCharacter(text, [&](char32_t code, std::string_view bytes) {
    if (code == '\t' || code == '\n' || code == '\r')
      bytes = " ";
    else if (IsHidden(code))
      return;
    full = full || printable.size() + bytes.size() > max_bytes;
    if (!full) printable += bytes;
  });
  return printable;
}

}  // namespace verbscope
