// SIGINT and SIGTERM become an Interrupt; SIGPIPE is ignored. One per process.
#ifndef VERBSCOPE_CMD_SIGNALS_H_
#define VERBSCOPE_CMD_SIGNALS_H_

#include "core/base/error.h"
#include "core/base/interrupt.h"

namespace verbscope {

// The process's Interrupt, with the handlers installed at the first call. A second SIGINT after the
// first one ends the process at once, for the user who will not wait.
Interrupt& ProcessInterrupt();

// kInterrupted once it was raised: for commands that do nothing that the signal itself ends.
Status CheckInterrupt();

}  // namespace verbscope

#endif  // VERBSCOPE_CMD_SIGNALS_H_
