// The TCP connection between both sides, as far as it helps to choose a device and GIDs: RDMA
// traffic should take the network over which the peer was reached.
//
// Plain data, filled once the control connection stands. FindNetdev is the only function of
// core/selection with I/O; any thread may call it.
#ifndef VERBSCOPE_CORE_SELECTION_CONTROL_PATH_H_
#define VERBSCOPE_CORE_SELECTION_CONTROL_PATH_H_

#include <string>
#include <string_view>

#include "core/base/error.h"

namespace verbscope {

// Every member has an initializer, so that designated initializers may leave any of them out.
struct ControlPath {
  bool loopback = false;            // --loopback: both ends in this process
  std::string local_address = {};   // numeric, may carry a zone ("fe80::1%eth0"); empty: not known
  std::string remote_address = {};  // likewise
  std::string netdev = {};          // owner of local_address; empty: not known
  int prefix_length = 0;            // of local_address, bits; 0: not known, 24 or 64 is assumed

  // Both ends are on this host: --loopback, or a control connection over a loopback address.
  bool same_host() const;
};

struct LocalNetdev {
  std::string name;
  int prefix_length = 0;  // bits
};

// The path of a connection between these two numeric addresses; netdev and prefix length as far as
// this namespace knows them.
ControlPath MakeControlPath(std::string local_address, std::string remote_address);

// The netdev of this network namespace that has `address` (numeric text). With a zone, that netdev.
// kSetup when the text is no address, no netdev has it, or getifaddrs fails.
Expected<LocalNetdev> FindNetdev(std::string_view address);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SELECTION_CONTROL_PATH_H_
