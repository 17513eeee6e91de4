#include "transports/soft/options/reach.h"

#include <string_view>

#include "transports/soft/options/value_text.h"

namespace verbscope::soft {

SoftOptions OptionsFor(const SoftOptions& options, const PeerReach& reach) {
  SoftOptions chosen = options;
  if (reach.same_host || !options.port.HasIp() || options.link == LinkKind::kMemory) return chosen;
  chosen.link = LinkKind::kUdp;
  if (chosen.address) return chosen;
  const std::string_view text = reach.local_address;
  // Without its zone: the interface is found again by the address.
  chosen.address = GidFromText(text.substr(0, text.find('%')));
  return chosen;
}

}  // namespace verbscope::soft
