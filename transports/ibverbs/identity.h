// What a device is, beyond what its attributes say: which driver, hardware or software, near which
// NUMA node, and whether verbscope can use it at all.
//
// Reads sysfs only and works without opening the device. Pure functions of the tree; any thread.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_IDENTITY_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_IDENTITY_H_

#include <infiniband/verbs.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "transports/common/system_files.h"
#include "transports/device.h"

namespace verbscope {

struct DeviceIdentity {
  std::string provider;  // "mlx5", "rxe", …; the kernel driver's own name when it is not in our
                         // table; empty when not known
  DeviceKind kind = DeviceKind::kHardware;
  int numa_node = -1;  // -1: none or not known
};

// Never by the device's name: udev and `rdma dev set` rename devices.
DeviceIdentity ReadIdentity(const SystemPaths& paths, std::string_view name);

// The error of a device that verbscope refuses (iWARP, usNIC, EFA and unknown transports); nullopt
// for InfiniBand and RoCE.
std::optional<Error> RefusalOf(std::string_view name, ibv_node_type node_type,
                               ibv_transport_type transport_type);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_IDENTITY_H_
