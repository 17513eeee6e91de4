#include "core/session/device_counters.h"

#include <algorithm>

namespace verbscope {

std::map<std::string, int64_t> DeviceCounters::Changes() const {
  std::map<std::string, int64_t> changes;
  if (!wanted_) return changes;
  for (const DeviceCounter& after : device_.ReadCounters(port_)) {
    const auto before = std::ranges::find(before_, after.name, &DeviceCounter::name);
    if (before != before_.end()) changes[after.name] = CounterChange(*before, after);
  }
  return changes;
}

}  // namespace verbscope
