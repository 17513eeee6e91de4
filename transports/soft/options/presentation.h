// How a soft device shows itself: the DeviceInfo and PortInfo of its options, and its GID table.
//
// Pure functions on plain data, any thread. Only ReadHostAddresses does I/O; tests pass a list.
#ifndef VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_PRESENTATION_H_
#define VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_PRESENTATION_H_

#include <infiniband/verbs.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/device.h"
#include "transports/soft/options/soft_options.h"

namespace verbscope::soft {

// One address of a network interface that is up.
struct HostAddress {
  std::string netdev;
  ibv_gid gid = {};       // IPv4 as ::ffff:a.b.c.d
  bool loopback = false;  // of the loopback interface
};

// The addresses of this network namespace, by getifaddrs, in its order. Empty when that fails: a
// soft device works without any.
std::vector<HostAddress> ReadHostAddresses();

// Every slot of the table in order of index, also the unreadable and the zero ones.
//   Given by the options: those.
//   options.address: that one, as RoCE v2, with the netdev that owns it.
//   InfiniBand: one entry, of the link-local subnet and the LID.
//   Otherwise the host's, of which a device on the UDP link takes one when it is opened, as RoCE
//   v2: of each interface its link-local IPv6, IPv4 and other IPv6 addresses; the loopback
//   interface last. 127.0.0.1 and ::1 are always there, because the memory link needs no network.
//   More than kGidTableEntries: the last ones before loopback are left out.
std::vector<GidSlot> GidTable(const SoftOptions& options, std::span<const HostAddress> host);

// Port 1 with the non-zero, readable slots of `table`.
PortInfo MakePortInfo(const SoftOptions& options, std::span<const GidSlot> table);

// The device with its port. `firmware` is the tool's version, may be empty.
DeviceInfo MakeDeviceInfo(const SoftOptions& options, std::span<const GidSlot> table,
                          std::string_view firmware);

}  // namespace verbscope::soft

#endif  // VERBSCOPE_TRANSPORTS_SOFT_OPTIONS_PRESENTATION_H_
