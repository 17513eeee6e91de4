// Reads the GID table of one port: index, value, type and network device of every entry in use.
//
// The ioctl behind ibv_query_gid_table answers in one call; older kernels and libraries do without,
// so sysfs is the fallback. Entries that cannot be read are left out and never fatal: slots change
// while they are read. Any thread.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_GID_TABLE_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_GID_TABLE_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transports/common/system_files.h"
#include "transports/device.h"
#include "transports/ibverbs/verbs_api.h"

namespace verbscope {

// "IB", "RoCE v1" or "RoCE v2". sysfs calls both older kinds "IB/RoCE v1"; the link layer says
// which. An unknown text is passed on.
std::string GidTypeFromSysfs(std::string_view text, LinkLayer link_layer);
std::string GidTypeFromVerbs(uint32_t type, LinkLayer link_layer);

// Name of an entry's network device, empty when it is not known or not in this network namespace.
// `name` is what sysfs says (it names devices of other namespaces too), `ifindex` what the ioctl
// says, 0 when not known. An interface of this namespace has both.
std::string NetdevOfGid(const std::string& name, uint32_t ifindex);

struct GidTableRequest {
  std::string_view device;  // its name in sysfs
  int port = 1;
  LinkLayer link_layer = LinkLayer::kUnspecified;
  int port_entries = 0;       // slots of this port
  size_t device_entries = 0;  // slots of all ports together
};

// Non-zero entries in order of index.
std::vector<GidEntry> ReadGidTable(VerbsApi& verbs, ibv_context* context,
                                   const GidTableRequest& request, const SystemPaths& paths);

// The fallback alone.
std::vector<GidEntry> ReadGidTableFromSysfs(const GidTableRequest& request,
                                            const SystemPaths& paths);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_GID_TABLE_H_
