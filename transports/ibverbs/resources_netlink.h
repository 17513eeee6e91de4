// The verbs objects of this host's kernel devices, asked for over RDMA netlink. It needs no
// privilege; without CAP_NET_ADMIN the kernel leaves keys out, and it shows objects of processes in
// this PID namespace only.
//
// Any thread; nothing is kept between calls.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_RESOURCES_NETLINK_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_RESOURCES_NETLINK_H_

#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "transports/common/system_files.h"
#include "transports/resources.h"

namespace verbscope {

// A row per device; none where the kernel has no RDMA subsystem. Processes are named from
// paths.proc. kSetup when the kernel refuses to list devices, or does not answer within 5 s.
Expected<std::vector<DeviceResources>> ReadResources(const SystemPaths& paths);

// Whether a kernel release ("6.1.0-28-amd64") numbers poll contexts with `direct` last: from 5.8
// on. True for a text that is none.
bool DirectIsLast(std::string_view release);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_RESOURCES_NETLINK_H_
