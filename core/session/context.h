// What a run needs of its process: where devices come from, how the user interrupts it, where
// notices go. Plain references; outlives the run.
#ifndef VERBSCOPE_CORE_SESSION_CONTEXT_H_
#define VERBSCOPE_CORE_SESSION_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/base/interrupt.h"
#include "core/record/record.h"
#include "transports/device.h"

namespace verbscope {

struct SessionContext {
  DeviceProvider& provider;
  Interrupt& interrupt;
  // Told to the user at once (standard error) and kept in the record; may be called from the
  // session's thread only.
  std::function<void(const std::string&)> notice;
  // What is being done right now, a few words; for a terminal only. May be empty.
  std::function<void(const std::string&)> progress = {};
  // Whether a point is measured on; see PointRun::More. A requester's; may be empty.
  std::function<int64_t(std::span<const Result> results, int64_t measured_ns)> more = {};
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_CONTEXT_H_
