// Counters that the kernel shows of a device and its ports, under /sys/class/infiniband.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_PORT_COUNTERS_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_PORT_COUNTERS_H_

#include <chrono>
#include <string_view>
#include <vector>

#include "transports/common/system_files.h"
#include "transports/device.h"

namespace verbscope {

// For how long the kernel answers with an older reading of the port's hw_counters: their
// `lifespan`, 10 ms as it comes (kernel documentation, sysfs-class-infiniband), at most 100 ms
// here. 0 where there is no such file.
std::chrono::milliseconds CounterLifespan(const SystemPaths& paths, std::string_view device,
                                          int port);

// Those of ports/N/counters, ports/N/hw_counters and of the device's own hw_counters, by name
// within each folder, and errors, drops and carrier changes of the port's netdev as "netdev.NAME";
// what is no number is left out. A name that stands in several folders is kept once, the port's
// before the device's. The kernel's port_xmit_data and port_rcv_data are in units of 4 bytes
// (kernel documentation, sysfs-class-infiniband): here they are port_xmit_data_bytes and
// port_rcv_data_bytes, in bytes modulo 2^64. port_xmit_wait stays in the device's ticks.
std::vector<DeviceCounter> ReadPortCounters(const SystemPaths& paths, std::string_view device,
                                            int port);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_PORT_COUNTERS_H_
