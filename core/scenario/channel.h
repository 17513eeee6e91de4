// A completion channel whose reads do not block. Pure function; any thread.
#ifndef VERBSCOPE_CORE_SCENARIO_CHANNEL_H_
#define VERBSCOPE_CORE_SCENARIO_CHANNEL_H_

#include "core/base/error.h"
#include "transports/device.h"

namespace verbscope {

// kSetup when there is none, or its descriptor cannot be changed.
Expected<CompChannel> MakeNonBlockingChannel(Device& device);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SCENARIO_CHANNEL_H_
