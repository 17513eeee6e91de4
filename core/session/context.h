// What a run needs of its process: where devices come from, how the user interrupts it, where
// notices go. Plain references; outlives the run.
#ifndef VERBSCOPE_CORE_SESSION_CONTEXT_H_
#define VERBSCOPE_CORE_SESSION_CONTEXT_H_

#include <functional>
#include <string>

#include "core/base/interrupt.h"
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
};

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_SESSION_CONTEXT_H_
