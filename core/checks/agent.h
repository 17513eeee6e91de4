// The other side's half of every check: makes queue pairs, posts, polls and looks at memory as the
// requester's check asks, until it is done. It knows no check, so that a check is written once, in
// one place. It does nothing beyond its own queue pairs and buffers, within the limits of ask.h.
//
// Run by the responder of a scenario; the session's thread.
#ifndef VERBSCOPE_CORE_CHECKS_AGENT_H_
#define VERBSCOPE_CORE_CHECKS_AGENT_H_

#include "core/base/error.h"
#include "core/scenario/scenario.h"

namespace verbscope {

// Serves until the requester says that it is done. A call that fails ends the run.
Status ServeCheck(Stage& stage);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CHECKS_AGENT_H_
