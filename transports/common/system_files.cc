#include "transports/common/system_files.h"

#include <fmt/core.h>

namespace verbscope {

std::string SystemPaths::Ibdev(std::string_view name) const {
  return fmt::format("{}/class/infiniband/{}", sysfs, name);
}

std::string SystemPaths::Port(std::string_view name, int port) const {
  return fmt::format("{}/ports/{}", Ibdev(name), port);
}

std::string SystemPaths::UverbsNode(std::string_view uverbs_name) const {
  return fmt::format("{}/infiniband/{}", dev, uverbs_name);
}

}  // namespace verbscope
