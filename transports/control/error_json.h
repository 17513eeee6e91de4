// Error ↔ JSON, as errors travel over the control channel.
//
// Members: "class", "side", "message", "cause", "next_step", "status", "errno". Reading is
// tolerant, since the peer may be older, newer or broken: what is missing or of a wrong type keeps
// its default. Pure functions, any thread.
#ifndef VERBSCOPE_TRANSPORTS_CONTROL_ERROR_JSON_H_
#define VERBSCOPE_TRANSPORTS_CONTROL_ERROR_JSON_H_

#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace verbscope {

// Each text of an error from a peer is cut to this many bytes and freed of control characters.
inline constexpr size_t kMaxErrorTextBytes = 1024;

nlohmann::json ErrorToWire(const Error& error);

// `side` is as the sender wrote it; who receives an error from the peer sets kPeer. A missing or
// unknown class is kInternal (ErrorClassFromName). An object without a message, or no object at
// all, gets a message that says so, so that no failure is ever without words.
Error ErrorFromWire(const nlohmann::json& json);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_CONTROL_ERROR_JSON_H_
