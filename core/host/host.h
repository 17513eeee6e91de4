// Who this side is, for the record: host, system, processor, and the device in the record's words.
//
// Labels for readers of a report: nothing here steers a measurement. Any thread; DescribeHost reads
// a few small files and is not for the inside of a loop.
#ifndef VERBSCOPE_CORE_HOST_HOST_H_
#define VERBSCOPE_CORE_HOST_HOST_H_

#include <ctime>
#include <optional>
#include <string>

#include "core/record/record.h"
#include "transports/device.h"

namespace verbscope {

// role: "requester", "responder" or "local". Fills host, os, kernel, cpu and, when the calling
// thread may not run on all CPUs that are online, pinned_cpus; call it after PinThread. What the
// system does not tell stays empty. Device and clock are left to their owners.
SideRecord DescribeHost(std::string role);

// The device, port and GID in use as the record has them. The soft device's link and icrc, and the
// inline limit, are left to who knows them.
DeviceRecord Describe(const DeviceInfo& device, const PortInfo& port,
                      const std::optional<GidEntry>& gid);

// "2026-01-31T23:59:58Z": the second that `time` is in.
std::string Rfc3339Utc(time_t time);
std::string Rfc3339UtcNow();

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_HOST_HOST_H_
