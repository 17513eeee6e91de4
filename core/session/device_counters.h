// What a device counted while something ran: read at construction, and again for the changes.
//
// One thread. A device whose counters are refreshed only every few milliseconds makes both readings
// wait for that long, so that neither is of another time.
#ifndef VERBSCOPE_CORE_SESSION_DEVICE_COUNTERS_H_
#define VERBSCOPE_CORE_SESSION_DEVICE_COUNTERS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transports/device.h"

namespace verbscope {

class DeviceCounters {
 public:
  DeviceCounters(Device& device, int port)
      : device_(device), port_(port), before_(device.ReadCounters(port)) {}

  // Unchanged ones included; what only one reading has, or was set back meanwhile, is left out.
  std::map<std::string, int64_t> Changes() const;
  // Of one of them; nothing where Changes leaves it out.
  std::optional<int64_t> Change(const std::string& name) const;

 private:
  Device& device_;
  const int port_;
  const std::vector<DeviceCounter> before_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_DEVICE_COUNTERS_H_
