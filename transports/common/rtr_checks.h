// Checks every input of a transition to RTR before the verb is called, one sentence each.
//
// Why: ibv_modify_qp to RTR is where a wrong address, GID, MTU or port shows, and all it answers is
// "Invalid argument", or success followed by a timeout of the first message. Pure functions.
#ifndef VERBSCOPE_TRANSPORTS_COMMON_RTR_CHECKS_H_
#define VERBSCOPE_TRANSPORTS_COMMON_RTR_CHECKS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/error.h"

namespace verbscope {

// What the device says just before the transition. What could not be read is left empty, and the
// checks that need it are left out: a failed query must not stop a run that would work.
struct RtrFacts {
  std::string_view device;  // its name
  uint32_t qp_num = 0;
  int port_count = 1;
  std::optional<ibv_port_attr> port;  // of the port that the address vector names
  std::optional<ibv_gid> source_gid;  // entry sgid_index of its table
};

// True for a modify call that moves a QP to RTR with an address vector.
bool IsTransitionToRtr(const ibv_qp_attr& attributes, int mask);

// The first input that is wrong, as an Error of class kSetup. Checked in this order: port number,
// port state, path MTU, then on Ethernet the GRH, on InfiniBand the LID, then both GIDs.
Status CheckRtrInputs(const ibv_qp_attr& attributes, const RtrFacts& facts);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_COMMON_RTR_CHECKS_H_
