#include "core/cost/free_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace verbscope {
namespace {

// The number at the beginning, behind spaces; nullopt for none ("max").
std::optional<uint64_t> NumberIn(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return std::nullopt;
  uint64_t number = 0;
  const auto result = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (result.ec != std::errc()) return std::nullopt;
  return number;
}

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

std::optional<uint64_t> FreeMemoryBytes(std::string_view meminfo, std::string_view cgroup_max,
                                        std::string_view cgroup_current) {
  constexpr std::string_view kKey = "MemAvailable:";
  std::optional<uint64_t> free;
  if (const size_t at = meminfo.find(kKey); at != std::string_view::npos) {
    if (const auto kib = NumberIn(meminfo.substr(at + kKey.size()))) free = *kib * 1024;
  }
  const std::optional<uint64_t> most = NumberIn(cgroup_max);
  const std::optional<uint64_t> used = NumberIn(cgroup_current);
  if (!most || !used) return free;
  const uint64_t left = *most - std::min(*most, *used);
  return std::min(free.value_or(left), left);
}

std::optional<uint64_t> ReadFreeMemoryBytes() {
  return FreeMemoryBytes(TextOf("/proc/meminfo"), TextOf("/sys/fs/cgroup/memory.max"),
                         TextOf("/sys/fs/cgroup/memory.current"));
}

}  // namespace verbscope
