#include "cmd/host_devices.h"

#include <utility>

namespace verbscope {

Expected<std::vector<DeviceSummary>> HostDevices::ListFor(const std::string& device) {
  const bool soft = SoftProvider::Means(device);
  Expected<DeviceSummary> shown = soft_.Describe(soft ? device : "soft");
  if (!shown) return Fail(std::move(shown.error()));
  Expected<std::vector<DeviceSummary>> devices = real_.List();
  if (!devices) {
    // Whoever wants the soft device does not care what is wrong with the others.
    if (!soft) return devices;
    devices = std::vector<DeviceSummary>();
  }
  devices->push_back(std::move(*shown));
  return devices;
}

Expected<std::unique_ptr<Device>> HostDevices::OpenFor(const std::string& name,
                                                       const PeerReach& reach) {
  return SoftProvider::Means(name) ? soft_.OpenFor(name, reach) : real_.Open(name);
}

}  // namespace verbscope
