#include "transports/ibverbs/port_counters.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

namespace verbscope {
namespace {

constexpr char kLifespan[] = "lifespan";

std::optional<uint64_t> NumberIn(const std::string& path) {
  const std::optional<std::string> text = ReadText(path);
  if (!text) return std::nullopt;
  uint64_t value = 0;
  const char* end = text->data() + text->size();
  const auto result = std::from_chars(text->data(), end, value);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return value;
}

void AddFolder(const std::string& folder, std::vector<DeviceCounter>& counters) {
  for (const std::string& name : ListFolder(folder)) {
    const bool known = std::ranges::find(counters, name, &DeviceCounter::name) != counters.end();
    if (known || name == kLifespan) continue;
    const std::optional<uint64_t> value = NumberIn(folder + "/" + name);
    if (value) counters.push_back({name, *value});
  }
}

}  // namespace

std::chrono::milliseconds CounterLifespan(const SystemPaths& paths, std::string_view device,
                                          int port) {
  constexpr int kLongestMs = 100;
  const int lifespan_ms =
      ReadInt(paths.Port(device, port) + "/hw_counters/" + kLifespan).value_or(0);
  return std::chrono::milliseconds(std::clamp(lifespan_ms, 0, kLongestMs));
}

std::vector<DeviceCounter> ReadPortCounters(const SystemPaths& paths, std::string_view device,
                                            int port) {
  std::vector<DeviceCounter> counters;
  AddFolder(paths.Port(device, port) + "/hw_counters", counters);
  AddFolder(paths.Port(device, port) + "/counters", counters);
  AddFolder(paths.Ibdev(device) + "/hw_counters", counters);
  return counters;
}

}  // namespace verbscope
