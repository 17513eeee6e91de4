// Builders for tests: GIDs from address text, ports and devices in one line each.
#ifndef VERBSCOPE_CORE_SELECTION_TESTING_H_
#define VERBSCOPE_CORE_SELECTION_TESTING_H_

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/selection/address.h"
#include "transports/device.h"

namespace verbscope {

inline GidEntry Gid(int index, const std::string& address, std::string type, std::string netdev) {
  GidEntry gid;
  gid.index = index;
  gid.type = std::move(type);
  gid.netdev = std::move(netdev);
  const IpAddress parsed = ParseIpAddress(address).value();  // throws: the test is wrong
  std::memcpy(gid.raw.raw, parsed.bytes.data(), parsed.bytes.size());
  return gid;
}

inline GidEntry V1(int index, const std::string& address, std::string netdev = "v0") {
  return Gid(index, address, "RoCE v1", std::move(netdev));
}

inline GidEntry V2(int index, const std::string& address, std::string netdev = "v0") {
  return Gid(index, address, "RoCE v2", std::move(netdev));
}

inline PortInfo EthernetPort(std::vector<GidEntry> gids, std::string state = "ACTIVE") {
  PortInfo port;
  port.active = state == "ACTIVE";
  port.state = std::move(state);
  port.link_layer = LinkLayer::kEthernet;
  port.active_mtu_bytes = 1024;
  port.gids = std::move(gids);
  return port;
}

inline PortInfo InfiniBandPort(uint32_t lid, std::vector<GidEntry> gids) {
  PortInfo port;
  port.active = true;
  port.state = "ACTIVE";
  port.link_layer = LinkLayer::kInfiniBand;
  port.active_mtu_bytes = 4096;
  port.lid = lid;
  port.gids = std::move(gids);
  return port;
}

// Ports are numbered from 1 in order.
inline DeviceSummary UsableDevice(std::string name, std::vector<PortInfo> ports) {
  DeviceSummary device;
  device.name = std::move(name);
  device.info.emplace();
  device.info->name = device.name;
  for (PortInfo& port : ports) {
    port.number = static_cast<int>(device.info->ports.size()) + 1;
    device.info->ports.push_back(std::move(port));
  }
  return device;
}

inline DeviceSummary UnusableDevice(std::string name, Error error) {
  DeviceSummary device;
  device.name = std::move(name);
  device.error = std::move(error);
  return device;
}

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SELECTION_TESTING_H_
