#include "transports/soft/device/provider.h"

#include <utility>

#include "transports/soft/device/soft_device.h"
#include "transports/soft/options/parse.h"
#include "transports/soft/options/presentation.h"
#include "transports/soft/options/reach.h"

namespace verbscope {

bool SoftProvider::Means(const std::string& name) { return soft::IsSoftDeviceString(name); }

Expected<std::vector<DeviceSummary>> SoftProvider::List() {
  Expected<DeviceSummary> device = Describe("soft");
  if (!device) return Fail(std::move(device.error()));
  return std::vector<DeviceSummary>{std::move(*device)};
}

Expected<DeviceSummary> SoftProvider::Describe(const std::string& name) const {
  Expected<soft::SoftOptions> options = soft::ParseDeviceString(name);
  if (!options) return Fail(std::move(options.error()));
  const std::vector<soft::GidSlot> table = soft::GidTable(*options, soft::ReadHostAddresses());
  return DeviceSummary{.name = name,
                       .info = soft::MakeDeviceInfo(*options, table, firmware_),
                       .error = std::nullopt};
}

Expected<std::unique_ptr<Device>> SoftProvider::OpenFor(const std::string& name,
                                                        const PeerReach& reach) {
  Expected<soft::SoftOptions> options = soft::ParseDeviceString(name);
  if (!options) return Fail(std::move(options.error()));
  Expected<std::unique_ptr<soft::SoftDevice>> device =
      soft::SoftDevice::Open(soft::OptionsFor(*options, reach), firmware_);
  if (!device) return Fail(std::move(device.error()));
  return std::move(*device);
}

}  // namespace verbscope
