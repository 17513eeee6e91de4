// All devices a command can use: those of libibverbs and the soft device, as one list.
//
// Owned by main; any thread.
#ifndef VERBSCOPE_CMD_HOST_DEVICES_H_
#define VERBSCOPE_CMD_HOST_DEVICES_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "transports/device.h"
#include "transports/ibverbs/provider.h"
#include "transports/soft/device/provider.h"

namespace verbscope {

class HostDevices final : public DeviceProvider {
 public:
  HostDevices(const IbverbsOptions& ibverbs, std::string tool_version)
      : real_(ibverbs), soft_(std::move(tool_version)) {}

  // The real devices, then the soft one.
  Expected<std::vector<DeviceSummary>> List() override { return ListFor("soft"); }
  Expected<std::vector<DeviceSummary>> ListFor(const std::string& device) override;
  // The soft device lives in this process: the kernel knows nothing of it.
  Expected<std::vector<DeviceResources>> Resources() override { return real_.Resources(); }
  Expected<std::unique_ptr<Device>> Open(const std::string& name) override {
    return OpenFor(name, {});
  }
  Expected<std::unique_ptr<Device>> OpenFor(const std::string& name,
                                            const PeerReach& reach) override;

 private:
  IbverbsProvider real_;
  SoftProvider soft_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_HOST_DEVICES_H_
