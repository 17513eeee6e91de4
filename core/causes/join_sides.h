// One fault, seen from both sides, as one Error. A run that breaks ends with an error on each side;
// often both describe the same fault (LOC_LEN_ERR here is REM_INV_REQ_ERR there), and often one is
// only the echo of the other ("the peer reports a fault", "the peer is gone", a flush).
//
// Pure function on plain data; any thread. The peer's texts must be safe to print already.
#ifndef VERBSCOPE_CORE_CAUSES_JOIN_SIDES_H_
#define VERBSCOPE_CORE_CAUSES_JOIN_SIDES_H_

#include "core/base/error.h"

namespace verbscope {

// `own` is the error of this process, `peer` the one the peer sent, each with `side` as its own
// process saw it. The result is as seen from here: its side says who saw the fault.
//
// The one that knows more becomes the result: an interruption, then a completion error noticed on
// the spot, one reported by a NAK, one noticed by silence, any other own finding, a flush, an echo.
// What the other one adds is appended to the message; an echo or a flush adds nothing. Both sides
// get the same choice. An interruption at the peer is kRun here.
Error JoinSides(const Error& own, const Error& peer);

}  // namespace verbscope

#endif  // VERBSCOPE_CORE_CAUSES_JOIN_SIDES_H_
