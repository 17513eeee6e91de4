// What a connected QP holds of the link, from RTR until it is reset or destroyed.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_DEVICE_LINK_USE_H_
#define VERBSCOPE_TRANSPORTS_SOFT_DEVICE_LINK_USE_H_

#include <cstdint>

#include "transports/soft/engine/packet_io.h"

namespace verbscope::soft {

struct LinkUse {
  PathId path = kNoPath;
  uint32_t peer_qpn = 0;      // over UDP each has addresses of its own
  bool acks_unasked = false;  // see QpContext: both ends are soft devices and an ACK costs much
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_DEVICE_LINK_USE_H_
