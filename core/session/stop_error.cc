#include "core/session/stop_error.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "core/session/steps.h"

namespace verbscope {

Error StopError(StopReason reason, PeerLink& link, const Monitor& monitor, const Plan& plan) {
  Error error;
  error.error_class = ErrorClass::kRun;
  switch (reason) {
    case StopReason::kInterrupted:
      return InterruptedError();
    case StopReason::kDeadline:
      return DeadlineError(plan);
    case StopReason::kDevice:
      error.message = fmt::format("the device reported: {}", monitor.device_event().value_or(""));
      error.cause = "the port or its netdev went down, or the device failed";
      error.next_step =
          "look at the cable, at `ip link` and at the kernel log (dmesg) of both hosts";
      return error;
    case StopReason::kPeerLost:
      return WhyPeerLost(link);
    case StopReason::kDone:
      error.message = "the peer ended the run early";
      return error;
    case StopReason::kNone:
      break;
  }
  error.error_class = ErrorClass::kInternal;
  error.message = "the measuring loop ended without a reason";
  return error;
}

}  // namespace verbscope
