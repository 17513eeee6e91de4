// Which link a soft device gets and at which address, from how its peer is reached. The peer may
// still turn out to be of another user; what then is the device's link's business
// (device/device_link.h).
//
// Pure; any thread.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_REACH_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_REACH_H_

#include "transports/device.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

// `options` as they are for a peer on this host. For one elsewhere `auto` becomes `udp`, and
// without an address of its own the device takes that of the control connection. Ports that have no
// UDP (InfiniBand, a GID table of their own) stay in memory.
SoftOptions OptionsFor(const SoftOptions& options, const PeerReach& reach);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_REACH_H_
