#include "core/doctor/rdma_tree.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/base/text_file.h"

namespace verbscope {
namespace {

// Names that are numbers, ascending by value: ports and GID indexes.
std::vector<int> NumbersIn(const HostTree& tree, const std::string& folder) {
  std::vector<int> numbers;
  for (const std::string& name : tree.List(folder)) {
    int number = 0;
    const auto result = std::from_chars(name.data(), name.data() + name.size(), number);
    if (result.ec == std::errc() && result.ptr == name.data() + name.size()) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<TreeGid> ReadGids(const HostTree& tree, const std::string& port) {
  std::vector<TreeGid> gids;
  for (const int index : NumbersIn(tree, port + "/gids")) {
    std::string value = tree.Text(fmt::format("{}/gids/{}", port, index)).value_or("");
    if (value.find_first_not_of("0:") == value.npos) continue;  // free, or not readable
    gids.push_back(
        {.index = index,
         .value = std::move(value),
         .type = tree.Text(fmt::format("{}/gid_attrs/types/{}", port, index)).value_or(""),
         .netdev = tree.Text(fmt::format("{}/gid_attrs/ndevs/{}", port, index)).value_or("")});
  }
  return gids;
}

// A card with several ports may have a network device for each: dev_port counts from 0.
std::string NetdevOf(const HostTree& tree, const TreeDevice& device, const TreePort& port) {
  for (const TreeGid& gid : port.gids) {
    if (!gid.netdev.empty()) return gid.netdev;
  }
  const std::string folder = device.folder + "/device/net";
  const std::vector<std::string> names = tree.List(folder);
  for (const std::string& name : names) {
    if (tree.Number(fmt::format("{}/{}/dev_port", folder, name)) == port.number - 1) return name;
  }
  if (!names.empty()) return names.front();
  return tree.Text(device.folder + "/parent").value_or("");
}

TreeDevice ReadDevice(const HostTree& tree, const std::string& name) {
  TreeDevice device;
  device.name = name;
  device.folder = "/sys/class/infiniband/" + name;
  device.node_type = tree.Text(device.folder + "/node_type").value_or("");
  const std::string uevent = tree.Text(device.folder + "/device/uevent").value_or("");
  // rxe has `parent`, and in old kernels borrowed the bus device of its network card.
  device.software = tree.Exists(device.folder + "/parent") || uevent.empty();
  if (!device.software) {
    device.driver = ValueOfKey(uevent, "DRIVER", '=').value_or("");
    device.slot = ValueOfKey(uevent, "PCI_SLOT_NAME", '=').value_or("");
  }
  for (const int number : NumbersIn(tree, device.folder + "/ports")) {
    TreePort port;
    port.device = name;
    port.number = number;
    port.software = device.software;
    port.folder = fmt::format("{}/ports/{}", device.folder, number);
    port.about = fmt::format("{} port {}", name, number);
    port.link_layer = tree.Text(port.folder + "/link_layer").value_or("");
    port.state = tree.Text(port.folder + "/state").value_or("");
    port.gids = ReadGids(tree, port.folder);
    port.netdev = NetdevOf(tree, device, port);
    device.ports.push_back(std::move(port));
  }
  return device;
}

}  // namespace

std::vector<TreeDevice> ReadRdmaTree(const HostTree& tree) {
  std::vector<TreeDevice> devices;
  for (const std::string& name : tree.List("/sys/class/infiniband")) {
    devices.push_back(ReadDevice(tree, name));
  }
  return devices;
}

}  // namespace verbscope
