#include "core/doctor/doctor.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/doctor/families.h"

namespace verbscope {
namespace {

constexpr RowText kDevices = {
    .name = "devices",
    .good = "one or more, with an active port",
    .symptom = "only the built-in software device can be measured (--device soft)",
    .fix =
        "load the driver of the adapter; on a host without one: modprobe rdma_rxe && rdma link "
        "add rxe0 type rxe netdev NETDEV"};

bool IsSoft(const std::string& device) { return device == "soft" || device.starts_with("soft:"); }

// The devices and ports that were asked for.
Expected<Scope> ScopeOf(const HostTree& tree, const PreflightRequest& request) {
  Scope scope;
  if (IsSoft(request.device)) return scope;
  std::vector<std::string> names;
  for (TreeDevice& device : ReadRdmaTree(tree)) {
    names.push_back(device.name);
    if (!request.device.empty() && device.name != request.device) continue;
    if (request.port) {
      std::erase_if(device.ports,
                    [&](const TreePort& port) { return port.number != *request.port; });
      if (device.ports.empty()) continue;
    }
    scope.devices.push_back(std::move(device));
  }
  if (scope.devices.empty() && (!request.device.empty() || request.port)) {
    const std::string what =
        request.device.empty() ? "RDMA device" : fmt::format("RDMA device {}", request.device);
    return Fail(
        SetupError(request.port ? fmt::format("there is no {} with a port {}", what, *request.port)
                                : fmt::format("there is no {}", what),
                   names.empty() ? "this host has no RDMA device"
                                 : fmt::format("the devices are: {}", fmt::join(names, ", ")),
                   "verbscope doctor without --device and --ib-port looks at all"));
  }
  for (const TreeDevice& device : scope.devices) {
    scope.hardware |= !device.software;
    scope.any_active |= std::ranges::any_of(device.ports, &TreePort::active);
  }
  return scope;
}

void CheckDevices(const Scope& scope, const PreflightRequest& request, PreflightRows& rows) {
  const Place place = {.file = "/sys/class/infiniband"};
  if (IsSoft(request.device)) {
    return rows.Ok(kDevices, place, "the built-in software device, which needs none of the host");
  }
  std::vector<std::string> names;
  for (const TreeDevice& device : scope.devices) {
    names.push_back(device.name + (device.software ? " (software)" : ""));
  }
  rows.OkIf(!names.empty(), kDevices, place,
            names.empty() ? "no RDMA device" : fmt::format("{}", fmt::join(names, ", ")));
}

}  // namespace

Expected<std::vector<PreflightRow>> Preflight(const HostTree& tree,
                                              const PreflightRequest& request) {
  Expected<Scope> scope = ScopeOf(tree, request);
  if (!scope) return Fail(std::move(scope.error()));
  PreflightRows rows;
  CheckDevices(*scope, request, rows);
  CheckLimits(tree, *scope, rows);
  for (const TreeDevice& device : scope->devices) {
    for (const TreePort& port : device.ports) {
      CheckPort(tree, *scope, port, rows);
      // iWARP has the same link layer and does not address by GIDs.
      if (port.roce() && !device.node_type.starts_with("4")) CheckGids(tree, port, rows);
    }
  }
  CheckSubnets(tree, *scope, rows);
  for (const TreeDevice& device : scope->devices) {
    CheckDevice(tree, device, rows);
    for (const TreePort& port : device.ports) CheckLink(tree, device, port, rows);
  }
  CheckCpus(tree, *scope, rows);
  CheckKernel(tree, rows);
  return rows.Take();
}

}  // namespace verbscope
