// The soft device as a member of a host's list of devices: one per device string.
//
// Plain; any thread. Owned by main.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PROVIDER_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PROVIDER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "transports/device.h"

namespace verbscope {

class SoftProvider final : public DeviceProvider {
 public:
  // `firmware`: what the device calls its firmware, the tool's version.
  explicit SoftProvider(std::string firmware) : firmware_(std::move(firmware)) {}

  // The device that `soft` alone names.
  Expected<std::vector<DeviceSummary>> List() override;
  // "soft" or "soft:key=value,…"; kUsage for a string that is not understood.
  Expected<std::unique_ptr<Device>> Open(const std::string& name) override {
    return OpenFor(name, {});
  }
  Expected<std::unique_ptr<Device>> OpenFor(const std::string& name,
                                            const PeerReach& reach) override;
  // The device of a string as a list shows it, without opening it.
  Expected<DeviceSummary> Describe(const std::string& name) const;
  static bool Means(const std::string& name);  // whether a device string is of the soft device

 private:
  const std::string firmware_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_PROVIDER_H_
