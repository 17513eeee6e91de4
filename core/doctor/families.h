// The families of preflight rows, a file each. Private to core/doctor; one thread.
//
// Each adds its rows in the order of what others depend on, and one for every property it knows:
// what cannot be read is a skip with the reason, never silence. Numbers are from the kernel's
// documentation of sysfs and procfs unless a comment names another source.
#ifndef VERBSCOPE_CORE_DOCTOR_FAMILIES_H_
#define VERBSCOPE_CORE_DOCTOR_FAMILIES_H_

#include <vector>

#include "core/doctor/host_tree.h"
#include "core/doctor/rdma_tree.h"
#include "core/doctor/rows.h"

namespace verbscope {

// What is looked at: the devices and ports that were asked for.
struct Scope {
  std::vector<TreeDevice> devices;
  // Whether a port of them is active: then one that is down is no reason to stop.
  bool any_active = false;
  // A real adapter is among them: what only its driver or fabric needs is looked at.
  bool hardware = false;
};

// limits.cc: locked memory, device files, namespace mode, cgroup of the RDMA subsystem.
void CheckLimits(const HostTree& tree, const Scope& scope, PreflightRows& rows);
// port.cc: state, rate, MTU; LID, subnet manager and P_Keys of InfiniBand.
void CheckPort(const HostTree& tree, const Scope& scope, const TreePort& port, PreflightRows& rows);
// gids.cc: the GID table of a RoCE port.
void CheckGids(const HostTree& tree, const TreePort& port, PreflightRows& rows);
// device.cc: node type, firmware, driver, PCIe link, NUMA node, IOMMU, interrupts of a device.
void CheckDevice(const HostTree& tree, const TreeDevice& device, PreflightRows& rows);
// cpu.cc: frequency, idle states, isolation, throttling of the CPUs.
void CheckCpus(const HostTree& tree, const Scope& scope, PreflightRows& rows);
// kernel.cc: NUMA balancing, huge pages, clock, virtualization, versions, environment.
void CheckKernel(const HostTree& tree, PreflightRows& rows);
// network.cc: several NICs in one subnet.
void CheckSubnets(const HostTree& tree, const Scope& scope, PreflightRows& rows);
// network.cc: link flaps; what only a privileged tool shows.
void CheckLink(const HostTree& tree, const TreeDevice& device, const TreePort& port,
               PreflightRows& rows);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_DOCTOR_FAMILIES_H_
