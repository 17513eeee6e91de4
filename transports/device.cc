#include "transports/device.h"

namespace verbscope {

std::string_view Name(DeviceKind kind) {
  return kind == DeviceKind::kHardware ? "hardware" : "software";
}

std::string_view Name(LinkLayer layer) {
  switch (layer) {
    case LinkLayer::kInfiniBand:
      return "InfiniBand";
    case LinkLayer::kEthernet:
      return "Ethernet";
    case LinkLayer::kUnspecified:
      break;
  }
  return "unspecified";
}

}  // namespace verbscope
