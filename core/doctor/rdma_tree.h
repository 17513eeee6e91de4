// The RDMA devices of a tree as its sysfs shows them: names, ports, GIDs, and the network and bus
// devices behind them. Nothing is opened and no verb is called. Plain data, any thread.
#ifndef VERBSCOPE_CORE_DOCTOR_RDMA_TREE_H_
#define VERBSCOPE_CORE_DOCTOR_RDMA_TREE_H_

#include <string>
#include <vector>

#include "core/doctor/host_tree.h"

namespace verbscope {

struct TreeGid {
  int index = 0;
  std::string value;   // as in sysfs, never all zeros
  std::string type;    // "IB/RoCE v1", "RoCE v2"; empty: not readable
  std::string netdev;  // empty: not readable, which in another namespace it is not
  bool link_local() const { return value.starts_with("fe80:"); }
};

struct TreePort {
  std::string device;
  int number = 1;
  std::string folder;      // in sysfs
  std::string about;       // "mlx5_0 port 1"
  bool software = false;   // as its device
  std::string link_layer;  // "InfiniBand", "Ethernet"; empty: not readable
  std::string state;       // "4: ACTIVE"; empty: not readable
  std::string netdev;      // of its GIDs, else of the bus device; empty: none in this namespace
  std::vector<TreeGid> gids = {};
  bool active() const { return state.starts_with("4"); }
  bool roce() const { return link_layer == "Ethernet"; }
};

struct TreeDevice {
  std::string name;
  std::string folder;     // in sysfs
  std::string node_type;  // "1: CA"
  std::string driver;     // of the bus device: "mlx5_core"; empty: none
  std::string slot;       // PCI address; empty: none
  bool software = false;  // no bus device of its own
  std::vector<TreePort> ports = {};
};

// In the order of their names.
std::vector<TreeDevice> ReadRdmaTree(const HostTree& tree);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_DOCTOR_RDMA_TREE_H_
