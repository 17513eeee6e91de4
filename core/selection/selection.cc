#include "core/selection/selection.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/selection/address.h"

namespace verbscope {
namespace {

// What a soft device calls its provider (DeviceInfo).
constexpr std::string_view kSoftProvider = "soft";

// Netdevs of a port, each once, in table order: "v0,v0.100"; empty when none is known.
std::string NetdevsOf(const PortInfo& port) {
  std::vector<std::string_view> names;
  for (const GidEntry& gid : port.gids) {
    if (gid.netdev.empty()) continue;
    if (std::find(names.begin(), names.end(), gid.netdev) == names.end()) {
      names.push_back(gid.netdev);
    }
  }
  return fmt::format("{}", fmt::join(names, ","));
}

std::string DescribePort(const std::string& device, const PortInfo& port) {
  const std::string netdevs = NetdevsOf(port);
  return fmt::format("{} port {} {} {} MTU {} netdev {}", device, port.number, port.state,
                     Name(port.link_layer), port.active_mtu_bytes,
                     netdevs.empty() ? "unknown" : netdevs);
}

std::string DescribeDevice(const DeviceSummary& device) {
  if (!device.info) {
    return fmt::format("{} (cannot be used: {})", device.name,
                       device.error ? device.error->message : "no reason given");
  }
  if (device.info->ports.empty()) return device.name + " (no ports)";
  std::string text;
  for (const PortInfo& port : device.info->ports) {
    text += (text.empty() ? "" : "; ") + DescribePort(device.name, port);
  }
  return text;
}

// The control address as far as the rules use it; nothing when it is unknown or tells nothing.
std::optional<IpAddress> RoutableControlAddress(const ControlPath& path) {
  const std::optional<IpAddress> address = ParseIpAddress(path.local_address);
  if (!address || address->is_link_local() || address->is_loopback()) return std::nullopt;
  return address;
}

bool OnControlNetdev(const PortInfo& port, const ControlPath& path) {
  return !path.netdev.empty() &&
         std::any_of(port.gids.begin(), port.gids.end(),
                     [&](const GidEntry& gid) { return gid.netdev == path.netdev; });
}

bool InControlSubnet(const PortInfo& port, const ControlPath& path) {
  const std::optional<IpAddress> control = RoutableControlAddress(path);
  if (!control) return false;
  const int prefix = path.prefix_length > 0 ? path.prefix_length : DefaultPrefixLength(*control);
  return std::any_of(port.gids.begin(), port.gids.end(), [&](const GidEntry& gid) {
    return SameSubnet(AddressOfGid(gid.raw), *control, prefix);
  });
}

std::string FixForPort(const PortInfo& port) {
  if (port.link_layer == LinkLayer::kInfiniBand) {
    return "check the cable and that a subnet manager runs; verbscope devices shows the state";
  }
  const std::string netdevs = NetdevsOf(port);
  if (netdevs.empty()) {
    return "bring its netdev up (ip link set NETDEV up); verbscope devices shows the state";
  }
  return fmt::format("ip link set {} up; verbscope devices shows the state",
                     netdevs.substr(0, netdevs.find(',')));
}

Error PortDownError(const std::string& device, const PortInfo& port) {
  const std::string netdevs = NetdevsOf(port);
  return SetupError(fmt::format("port {} of {} is {}, not ACTIVE", port.number, device, port.state),
                    netdevs.empty()
                        ? std::string("its netdev is unknown or in another namespace")
                        : fmt::format("its netdev {} is down or has no carrier", netdevs),
                    FixForPort(port));
}

// A control network other than the RDMA network is allowed, yet often a mistake on a host with many
// interfaces. On InfiniBand it is the rule, so nothing is said.
std::string NoticeFor(const std::string& device, const PortInfo& port, const ControlPath& path) {
  if (path.same_host() || port.link_layer != LinkLayer::kEthernet || path.netdev.empty()) return {};
  if (OnControlNetdev(port, path) || InControlSubnet(port, path)) return {};
  const std::string netdevs = NetdevsOf(port);
  return fmt::format(
      "the control connection uses {} on netdev {}, the RDMA traffic of {} port {} uses netdev {}",
      path.local_address, path.netdev, device, port.number, netdevs.empty() ? "unknown" : netdevs);
}

Expected<Choice> ChooseNamed(const DeviceSummary& device, const LocalSettings& settings,
                             const ControlPath& path) {
  if (!device.info) {
    Error error = SetupError(fmt::format("device {} cannot be used", device.name),
                             "no reason given", "verbscope devices");
    if (device.error) {
      error.cause = device.error->message;
      if (!device.error->cause.empty()) error.cause += ": " + device.error->cause;
      if (!device.error->next_step.empty()) error.next_step = device.error->next_step;
      error.errno_value = device.error->errno_value;
    }
    return Fail(std::move(error));
  }
  const std::vector<PortInfo>& ports = device.info->ports;
  const auto wanted = std::find_if(ports.begin(), ports.end(), [&](const PortInfo& port) {
    return settings.ib_port ? port.number == *settings.ib_port : port.active;
  });
  if (wanted == ports.end() && settings.ib_port) {
    return Fail(SetupError(fmt::format("device {} has no port {}", device.name, *settings.ib_port),
                           "it has: " + DescribeDevice(device), "give one of them by --ib-port"));
  }
  if (wanted == ports.end() && ports.empty()) {
    return Fail(SetupError(fmt::format("device {} has no ports", device.name), "",
                           "verbscope devices lists all devices"));
  }
  // Without an active port the first one is named; with one port, which is usual, it is the one.
  if (wanted == ports.end()) return Fail(PortDownError(device.name, ports.front()));
  if (!wanted->active) return Fail(PortDownError(device.name, *wanted));
  return Choice{.device = device.name,
                .port = wanted->number,
                .reason = "it was asked for by --device",
                .notice = NoticeFor(device.name, *wanted, path)};
}

// The first port, in list order, which is allowed by --ib-port and matches.
template <class Matches>
std::optional<std::pair<const DeviceSummary*, const PortInfo*>> FindPort(
    const std::vector<DeviceSummary>& devices, const LocalSettings& settings, Matches matches) {
  for (const DeviceSummary& device : devices) {
    if (!device.info) continue;
    for (const PortInfo& port : device.info->ports) {
      if (settings.ib_port && port.number != *settings.ib_port) continue;
      if (matches(port)) return std::make_pair(&device, &port);
    }
  }
  return std::nullopt;
}

// Rule 5. The cause names a port that would have matched, were it up.
Error NoMatchError(const std::vector<DeviceSummary>& devices, const LocalSettings& settings,
                   const ControlPath& path) {
  const auto active = FindPort(devices, settings, [](const PortInfo& port) { return port.active; });
  const auto down = FindPort(devices, settings, [&](const PortInfo& port) {
    return !port.active &&
           (path.same_host() || OnControlNetdev(port, path) || InControlSubnet(port, path));
  });
  std::string message = "no RDMA device has an active port";
  if (active) {
    message = fmt::format("no RDMA device belongs to the control address {} (netdev {})",
                          path.local_address.empty() ? "unknown" : path.local_address,
                          path.netdev.empty() ? "unknown" : path.netdev);
  }
  if (settings.ib_port) message += fmt::format(" with --ib-port {}", *settings.ib_port);
  std::string cause = "the devices are: " + DescribeChoices(devices);
  std::string next_step;
  if (down) {
    cause += fmt::format("; port {} of {} would match, but it is {}", down->second->number,
                         down->first->name, down->second->state);
    next_step = FixForPort(*down->second);
  }
  if (active) {
    next_step +=
        fmt::format("{}choose one with --device, such as --device {} --ib-port {}",
                    next_step.empty() ? "" : "; or ", active->first->name, active->second->number);
  }
  if (next_step.empty()) next_step = "bring a port up; verbscope devices shows the state of each";
  return SetupError(std::move(message), std::move(cause), std::move(next_step));
}

// Rules 2 to 5.
Expected<Choice> ChooseByPath(const std::vector<DeviceSummary>& devices,
                              const LocalSettings& settings, const ControlPath& path) {
  if (path.same_host()) {
    if (const auto found =
            FindPort(devices, settings, [](const PortInfo& port) { return port.active; })) {
      return Choice{.device = found->first->name,
                    .port = found->second->number,
                    .reason = "both ends are on this host and it is the first active port",
                    .notice = {}};
    }
    return Fail(NoMatchError(devices, settings, path));
  }
  if (const auto found = FindPort(devices, settings, [&](const PortInfo& port) {
        return port.active && OnControlNetdev(port, path);
      })) {
    return Choice{.device = found->first->name,
                  .port = found->second->number,
                  .reason = fmt::format("its netdev {} owns the control address {}", path.netdev,
                                        path.local_address),
                  .notice = {}};
  }
  if (const auto found = FindPort(devices, settings, [&](const PortInfo& port) {
        return port.active && InControlSubnet(port, path);
      })) {
    return Choice{.device = found->first->name,
                  .port = found->second->number,
                  .reason = fmt::format("it has a GID in the subnet of the control address {}",
                                        path.local_address),
                  .notice = {}};
  }
  return Fail(NoMatchError(devices, settings, path));
}

bool IsSoft(const DeviceSummary& device) {
  return device.info && device.info->provider == kSoftProvider;
}

std::vector<DeviceSummary> RealOnes(const std::vector<DeviceSummary>& devices) {
  std::vector<DeviceSummary> real;
  std::ranges::remove_copy_if(devices, std::back_inserter(real), IsSoft);
  return real;
}

// A real device with an active port, else the soft one.
Expected<Choice> ChooseForLoopback(const std::vector<DeviceSummary>& devices,
                                   const std::vector<DeviceSummary>& real,
                                   const LocalSettings& settings, const ControlPath& path) {
  Expected<Choice> choice =
      real.empty() ? Fail(NoDeviceError()) : ChooseByPath(real, settings, path);
  const auto soft = std::ranges::find_if(devices, IsSoft);
  // A port that was asked for by number is one of a real device.
  if (choice || soft == devices.end() || settings.ib_port) return choice;
  return Choice{.device = soft->name,
                .port = 1,
                .reason = "no RDMA device of this host has an active port",
                .notice = real.empty()
                              ? "no RDMA device on this host: the software device was taken"
                              : "no RDMA device has an active port: the software device was taken; "
                                "the devices are: " +
                                    DescribeChoices(real)};
}

}  // namespace

std::string DescribeChoices(const std::vector<DeviceSummary>& devices) {
  std::string text;
  for (const DeviceSummary& device : devices) {
    text += (text.empty() ? "" : "; ") + DescribeDevice(device);
  }
  return text.empty() ? "none" : text;
}

Error NoDeviceError() {
  return SetupError(
      "no RDMA device on this host",
      "no driver has registered one, or it is in another network namespace",
      "use the built-in software device with --device soft (on both sides), load the "
      "driver of the adapter, or make a kernel software device: "
      "rdma link add rxe0 type rxe netdev NETDEV; verbscope devices lists what there is");
}

Status RequireUsableDevice(const std::vector<DeviceSummary>& devices, const LocalSettings& settings,
                           bool loopback) {
  if (!settings.device.empty()) {
    Expected<Choice> choice = ChooseDevice(devices, settings, {});
    return choice ? Status() : Fail(std::move(choice.error()));
  }
  const std::vector<DeviceSummary> real = RealOnes(devices);
  const auto usable = [](const DeviceSummary& device) { return device.info.has_value(); };
  if (std::ranges::any_of(real, usable) || (loopback && real.size() < devices.size())) return {};
  if (real.empty()) return Fail(NoDeviceError());
  return real.front().error ? Fail(*real.front().error) : Fail(NoDeviceError());
}

Expected<Choice> ChooseDevice(const std::vector<DeviceSummary>& devices,
                              const LocalSettings& settings, const ControlPath& path) {
  const std::string& name = settings.device;
  const auto named = std::find_if(devices.begin(), devices.end(),
                                  [&](const DeviceSummary& device) { return device.name == name; });
  if (!name.empty() && named != devices.end()) return ChooseNamed(*named, settings, path);
  const std::vector<DeviceSummary> real = RealOnes(devices);
  if (!name.empty()) {
    if (real.empty()) {
      Error error = NoDeviceError();
      error.message += ", so none named " + name;
      return Fail(std::move(error));
    }
    return Fail(SetupError(fmt::format("there is no RDMA device {}", name),
                           "the devices are: " + DescribeChoices(devices),
                           "give one of them by --device"));
  }
  if (path.loopback) return ChooseForLoopback(devices, real, settings, path);
  if (Status usable = RequireUsableDevice(real, settings, false); !usable) {
    return Fail(std::move(usable.error()));
  }
  return ChooseByPath(real, settings, path);
}

}  // namespace verbscope
