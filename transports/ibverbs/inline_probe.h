// Finds the largest inline payload that a device takes. No query reports it: the limit depends on
// QP type and SGE count, and creating a QP with too much fails with EINVAL for no stated reason.
//
// Pure logic over a creating function, so that it is tested without a device; any thread.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_INLINE_PROBE_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_INLINE_PROBE_H_

#include <cstdint>
#include <functional>

#include "core/base/error.h"

namespace verbscope {

// Creates a QP that asks for `bytes` inline, destroys it again, and returns the size that the
// device gave back in the QP's capabilities; its error when there was no QP.
using InlineAttempt = std::function<Expected<uint32_t>(uint32_t bytes)>;

// The limit in bytes; 0 when the device has no inline. Fails only when not even a QP without inline
// can be made, or the device went away.
//
// Few attempts, since some drivers log each refused one: the first asks for nothing (a device that
// answers with a larger size has told its unit, and the search starts there), the second for 1024,
// which most devices refuse; then bisection, at most 12 in all for limits below 1024. A device that
// accepts a request but gives back less is believed by what it gave: that is its limit.
Expected<uint32_t> FindMaxInline(const InlineAttempt& attempt);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_INLINE_PROBE_H_
