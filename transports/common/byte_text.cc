#include "transports/common/byte_text.h"

#include <fmt/core.h>

#include <string_view>

namespace verbscope {

std::string FormatBytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  double value = static_cast<double>(bytes);
  std::string_view unit = "bytes";
  for (const std::string_view next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  // One decimal, and none for whole numbers.
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return fmt::format("{} {}", text, unit);
}

}  // namespace verbscope
