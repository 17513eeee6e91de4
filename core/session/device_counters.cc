#include "core/session/device_counters.h"

#include <algorithm>
#include <cstdint>

namespace verbscope {

std::map<std::string, int64_t> DeviceCounters::Changes() const {
  std::map<std::string, int64_t> changes;
  for (const DeviceCounter& after : device_.ReadCounters(port_)) {
    const auto before = std::ranges::find(before_, after.name, &DeviceCounter::name);
    if (before == before_.end()) continue;
    const int64_t change = CounterChange(*before, after);
    // One that fell by other than going round was set back meanwhile: nobody knows what it counted.
    const bool fell = after.value < before->value;
    if (fell && (change < 0 || change > INT32_MAX)) continue;
    changes[after.name] = change;
  }
  return changes;
}

std::optional<int64_t> DeviceCounters::Change(const std::string& name) const {
  const std::map<std::string, int64_t> changes = Changes();
  const auto found = changes.find(name);
  return found == changes.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace verbscope
