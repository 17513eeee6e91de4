#include "transports/soft/link/udp_paths.h"

#include <functional>
#include <string_view>

namespace verbscope::soft {

size_t UdpPaths::Hash::operator()(const UdpPair& pair) const {
  const std::string_view bytes(reinterpret_cast<const char*>(pair.peer.data()), pair.peer.size());
  return std::hash<std::string_view>()(bytes) + pair.local;
}

PathId UdpPaths::Add(std::unique_ptr<UdpPath> path) {
  PathId id = 0;
  while (id < paths_.size() && paths_[id] != nullptr) ++id;
  if (id == kMaxUdpPaths) return kNoPath;
  if (id == paths_.size()) paths_.emplace_back();
  ids_.emplace(path->pair, id);
  paths_[id] = std::move(path);
  return id;
}

void UdpPaths::Remove(PathId path) {
  ids_.erase(paths_[path]->pair);
  paths_[path].reset();
  last_ = kNoPath;
}

}  // namespace verbscope::soft
