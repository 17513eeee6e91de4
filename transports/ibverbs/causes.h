// Why a verbs call failed and what to do about it, by call and errno: a table, and the function
// that makes an Error from it. libibverbs says "Invalid argument" for a dozen different reasons;
// the rows say what that errno means for that call.
//
// Pure data and pure functions; any thread.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_CAUSES_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_CAUSES_H_

#include <optional>
#include <string_view>

#include "core/base/error.h"

namespace verbscope {

enum class VerbCall {
  kGetDeviceList,
  kOpenDevice,
  kQueryDevice,
  kQueryPort,
  kAllocPd,
  kRegMr,
  kCreateCompChannel,
  kCreateCq,
  kModifyCq,
  kCreateSrq,
  kModifySrq,
  kCreateQp,
  kModifyQp,       // every transition but the next one
  kModifyQpToRtr,  // the transition that resolves the path to the peer
  kQueryQp,
  kGetCqEvent,
  kGetAsyncEvent,
  kDeallocPd,
  kDeregMr,
  kDestroyCompChannel,
  kDestroyCq,
  kDestroyQp,
  kDestroySrq,
  kCloseDevice,
};

// Name of the library function ("ibv_create_qp").
std::string_view FunctionName(VerbCall call);

struct Cause {
  std::string_view cause;
  std::string_view next_step;
};

// The row of this call and errno, else the row of this errno for any call; nullopt when the table
// knows neither.
std::optional<Cause> FindCause(VerbCall call, int errno_value);

// "ibv_create_qp(PARAMETERS) failed: ERRNO TEXT" with cause and next step from the table. Class:
// kSetup for what builds a run, kRun for events and tear-down, kInternal for tear-down that failed
// with EBUSY, since then we destroyed in the wrong order.
Error VerbError(VerbCall call, std::string_view parameters, int errno_value);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_CAUSES_H_
