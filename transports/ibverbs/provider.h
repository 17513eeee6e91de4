// All devices of libibverbs: lists them, usable or not with the reason, and opens one by name.
//
// A plain object; it owns the options only. Any thread, one call at a time.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_PROVIDER_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_PROVIDER_H_

#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "transports/device.h"
#include "transports/ibverbs/device.h"
#include "transports/ibverbs/verbs_api.h"

namespace verbscope {

class IbverbsProvider final : public DeviceProvider {
 public:
  explicit IbverbsProvider(IbverbsOptions options = {}) : IbverbsProvider(options, SystemVerbs()) {}
  // For tests: another library and other system files. `verbs` must outlive the devices.
  IbverbsProvider(IbverbsOptions options, VerbsApi& verbs);

  // Each device is opened and queried, and closed again. Devices that the kernel has and libibverbs
  // leaves out without a word (no device node in this container, no provider library) have a row
  // with the reason, after the others.
  Expected<std::vector<DeviceSummary>> List() override;
  Expected<std::vector<DeviceResources>> Resources() override;
  Expected<std::unique_ptr<Device>> Open(const std::string& name) override;

 private:
  const IbverbsOptions options_;
  VerbsApi& verbs_;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_PROVIDER_H_
