// Turns the port and device attributes of libibverbs into our plain data, in bytes and Gbit/s.
//
// Pure functions but for ReadPort, which asks the device; any thread.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_PORT_READER_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_PORT_READER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "transports/common/system_files.h"
#include "transports/device.h"
#include "transports/ibverbs/verbs_api.h"

namespace verbscope {

// Signalling rate in Gbit/s of the width and speed codes (IBA PortInfo LinkWidthActive,
// LinkSpeedActive), with the kernel's rounded lane rates; 0 when either code is unknown.
double LinkRate(uint8_t width_code, uint8_t speed_code);

// The same from the text of ports/N/rate ("100 Gb/sec (4X EDR)"); 0 for any other text. Newer
// speeds do not fit the 8 bits of active_speed and are only there.
double LinkRateFromSysfs(std::string_view text);

DeviceLimits LimitsOf(const ibv_device_attr& attributes, int comp_vectors);

// A fresh reading of port `port` of `port_count`, with its GID table. kSetup when it does not exist
// or cannot be queried.
Expected<PortInfo> ReadPort(VerbsApi& verbs, ibv_context* context, const std::string& device,
                            int port, int port_count, const SystemPaths& paths);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_PORT_READER_H_
