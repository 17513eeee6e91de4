// What a link knows of a path beyond its number: the addresses that its packets carry on a wire,
// real or imagined. Faults need them for an ICRC, capture for whole frames.
//
// Threads: called with the device's lock held.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_LINK_PATH_FLOWS_H_
#define VERBSCOPE_TRANSPORTS_SOFT_LINK_PATH_FLOWS_H_

#include "transports/soft/engine/packet_io.h"
#include "transports/soft/wire/frame.h"

namespace verbscope::soft {

class PathFlows {
 public:
  virtual ~PathFlows() = default;
  // Of packets to the peer, and of packets from it. Null: no such path, or not known yet.
  virtual const Flow* SendFlow(PathId path) const = 0;
  virtual const Flow* ReceiveFlow(PathId path) const = 0;
};

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_LINK_PATH_FLOWS_H_
