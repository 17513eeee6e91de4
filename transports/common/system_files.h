// Where the kernel's own files lie. The roots can be moved, so tests read a hand-made tree instead
// of this host's; core/base/text_file.h reads them.
//
// Plain values; any thread.
#ifndef VERBSCOPE_TRANSPORTS_COMMON_SYSTEM_FILES_H_
#define VERBSCOPE_TRANSPORTS_COMMON_SYSTEM_FILES_H_

#include <string>
#include <string_view>

#include "core/base/text_file.h"

namespace verbscope {

struct SystemPaths {
  std::string sysfs = "/sys";
  std::string dev = "/dev";
  std::string proc = "/proc";

  // sysfs folder of one RDMA device.
  std::string Ibdev(std::string_view name) const;
  // sysfs folder of one of its ports, counted from 1.
  std::string Port(std::string_view name, int port) const;
  // The character device through which libibverbs talks to the kernel ("uverbs0").
  std::string UverbsNode(std::string_view uverbs_name) const;
};

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_COMMON_SYSTEM_FILES_H_
