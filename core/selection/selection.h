// Which device and port this side uses. A pure function of the list of devices, the options of this
// side and the control connection; it opens nothing and asks nothing. Any thread.
//
// Rules, first match wins (the contract is the row of --device in the command-line reference):
//   1. --device NAME: that one, or an error that names those that exist.
//      Only by name, or in --loopback when no real device has an active port, is the soft device
//      chosen: a run against another host must never measure something else silently.
//   2. Both ends on this host: the first device with an active port.
//   3. The active port with a GID on the netdev that owns the control address.
//   4. The active port with a GID in the subnet of the control address. Link-local addresses do not
//      count: every netdev is in fe80::/64.
//   5. An error that lists every device and the option to give. There is no "first device" rule: a
//      port of another network would answer with a timeout, not with an error.
// A port that is not active is never chosen; asked for by name it is refused.
#ifndef VERBSCOPE_CORE_SELECTION_SELECTION_H_
#define VERBSCOPE_CORE_SELECTION_SELECTION_H_

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/plan/plan.h"
#include "core/selection/control_path.h"
#include "transports/device.h"

namespace verbscope {

struct Choice {
  std::string device;  // name, as in DeviceSummary
  int port = 1;
  std::string reason;  // why this one, half a sentence: "it was asked for by --device"
  std::string notice;  // a warning for the report; empty when there is none
};

// All errors are kSetup, name the devices that exist and the option or command that helps.
Expected<Choice> ChooseDevice(const std::vector<DeviceSummary>& devices,
                              const LocalSettings& settings, const ControlPath& path);

// "no RDMA device on this host", with what to do about it.
Error NoDeviceError();

// Whether this side could run anything with these settings, as far as is known before there is a
// peer: a named device exists and can be used; without a name, some real device can, or with
// `loopback` the soft one.
Status RequireUsableDevice(const std::vector<DeviceSummary>& devices, const LocalSettings& settings,
                           bool loopback);

// One line with every port of every device: "rxe0 port 1 ACTIVE Ethernet MTU 1024 netdev v0; …".
// A device that cannot be used says why. "none" for an empty list.
std::string DescribeChoices(const std::vector<DeviceSummary>& devices);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SELECTION_SELECTION_H_
