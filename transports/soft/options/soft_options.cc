#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

std::string_view Name(LinkKind link) {
  switch (link) {
    case LinkKind::kAuto:
      return "auto";
    case LinkKind::kMemory:
      return "memory";
    case LinkKind::kUdp:
      return "udp";
  }
  return "auto";
}

}  // namespace verbscope::soft
