#include "core/record/count_text.h"

#include <fmt/core.h>

#include <cstddef>

namespace verbscope {

std::string CountText(uint64_t count) {
  std::string text = std::to_string(count);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), 1, ',');
  }
  return text;
}

std::string Plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", CountText(count), noun, count == 1 ? "" : "s");
}

}  // namespace verbscope
