#include "transports/ibverbs/provider.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "transports/ibverbs/causes.h"
#include "transports/ibverbs/resources_netlink.h"

namespace verbscope {
namespace {

// Owner of the library's list; empty on a host without kernel support.
class DeviceList {
 public:
  explicit DeviceList(VerbsApi& verbs) : verbs_(verbs) {
    int count = 0;
    errno = 0;
    list_ = verbs_.GetDeviceList(&count);
    if (list_ != nullptr) {
      devices_ = std::span(list_, static_cast<size_t>(std::max(count, 0)));
    } else if (errno != ENOSYS && errno != ENOENT && errno != 0) {
      // ENOSYS and ENOENT: ib_uverbs is not loaded, so there are no devices, and that is no error.
      errno_value_ = errno;
    }
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ~DeviceList() {
    if (list_ != nullptr) verbs_.FreeDeviceList(list_);
  }

  int errno_value() const { return errno_value_; }
  std::span<ibv_device*> devices() const { return devices_; }
  ibv_device* Find(std::string_view name) const {
    for (ibv_device* device : devices_) {
      if (name == device->name) return device;
    }
    return nullptr;
  }

 private:
  VerbsApi& verbs_;
  ibv_device** list_ = nullptr;
  std::span<ibv_device*> devices_;
  int errno_value_ = 0;
};

std::vector<std::string> DevicesOfKernel(const SystemPaths& paths) {
  return ListFolder(paths.sysfs + "/class/infiniband");
}

// Why the library leaves out a device that the kernel has.
Error LeftOut(const SystemPaths& paths, const std::string& name) {
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = fmt::format("{} exists in the kernel, but libibverbs does not offer it", name);
  for (const std::string& uverbs : ListFolder(paths.sysfs + "/class/infiniband_verbs")) {
    const std::string folder = paths.sysfs + "/class/infiniband_verbs/" + uverbs;
    if (ReadText(folder + "/ibdev").value_or("") != name) continue;
    const std::string node = paths.UverbsNode(uverbs);
    if (::access(node.c_str(), F_OK) != 0) {
      error.errno_value = errno;
      error.cause = "its device node " + node + " is missing here, as in a container without it";
      error.next_step =
          "give the container the device (--device /dev/infiniband, or the device "
          "plugin's resource)";
    } else {
      error.cause = "no provider library fits its kernel driver";
      error.next_step = "install the provider library of this device (ibverbs-providers)";
    }
    return error;
  }
  error.cause =
      "it has no interface for user programs: ib_uverbs is not loaded, or the device "
      "belongs to another network namespace";
  error.next_step = "load the module with `modprobe ib_uverbs`; see the namespaces with `rdma dev`";
  return error;
}

Error NoSuchDevice(const SystemPaths& paths, const std::string& name, const DeviceList& list) {
  const std::vector<std::string> kernel = DevicesOfKernel(paths);
  if (std::find(kernel.begin(), kernel.end(), name) != kernel.end()) return LeftOut(paths, name);
  Error error;
  error.error_class = ErrorClass::kSetup;
  error.message = fmt::format("there is no RDMA device named {}", name);
  std::vector<std::string> names;
  for (const ibv_device* device : list.devices()) names.emplace_back(device->name);
  if (names.empty()) {
    error.cause = "this host has none, or none in this network namespace";
    error.next_step = "load the driver of the adapter; `verbscope devices` lists what there is";
  } else {
    error.cause = fmt::format("the devices here are {}", fmt::join(names, ", "));
    error.next_step = "choose one of them with --device";
  }
  return error;
}

}  // namespace

IbverbsProvider::IbverbsProvider(IbverbsOptions options, VerbsApi& verbs)
    : options_(std::move(options)), verbs_(verbs) {}

Expected<std::vector<DeviceSummary>> IbverbsProvider::List() {
  const DeviceList list(verbs_);
  if (list.errno_value() != 0) {
    return Fail(VerbError(VerbCall::kGetDeviceList, "", list.errno_value()));
  }
  std::vector<DeviceSummary> summaries;
  for (ibv_device* device : list.devices()) {
    DeviceSummary summary;
    summary.name = device->name;
    auto opened = IbverbsDevice::Open(verbs_, device, options_);
    if (opened) {
      summary.info = (*opened)->info();
    } else {
      summary.error = std::move(opened.error());
    }
    summaries.push_back(std::move(summary));
  }
  for (const std::string& name : DevicesOfKernel(options_.paths)) {
    if (list.Find(name) != nullptr) continue;
    DeviceSummary summary;
    summary.name = name;
    summary.error = LeftOut(options_.paths, name);
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

Expected<std::vector<DeviceResources>> IbverbsProvider::Resources() {
  return ReadResources(options_.paths);
}

Expected<std::unique_ptr<Device>> IbverbsProvider::Open(const std::string& name) {
  const DeviceList list(verbs_);
  if (list.errno_value() != 0) {
    return Fail(VerbError(VerbCall::kGetDeviceList, "", list.errno_value()));
  }
  ibv_device* device = list.Find(name);
  if (device == nullptr) return Fail(NoSuchDevice(options_.paths, name, list));
  auto opened = IbverbsDevice::Open(verbs_, device, options_);
  if (!opened) return Fail(std::move(opened.error()));
  return std::unique_ptr<Device>(std::move(*opened));
}

}  // namespace verbscope
