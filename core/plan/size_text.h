// A number of bytes as it reads best. A function without state, any thread.
#ifndef VERBSCOPE_CORE_PLAN_SIZE_TEXT_H_
#define VERBSCOPE_CORE_PLAN_SIZE_TEXT_H_

#include <cstdint>
#include <iterator>
#include <string>

namespace verbscope {

// "64 B", "513 B", "1 MiB": whole units of 1024 only, up to GiB.
inline std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB"};
  size_t unit = 0;
  while (bytes >= 1024 && bytes % 1024 == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_PLAN_SIZE_TEXT_H_
