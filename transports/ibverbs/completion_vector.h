// On which CPU the interrupts of a completion vector arrive: the way from a completion to the
// thread that waits for it (completion vector, event queue, interrupt, core).
//
// Pure reads of the system's files; any thread.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_COMPLETION_VECTOR_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_COMPLETION_VECTOR_H_

#include <optional>
#include <string_view>

#include "transports/common/system_files.h"

namespace verbscope {

// Nothing where the host does not show it: a device without interrupts of its own (rxe), names of
// interrupts that do not tell the vector, an affinity to several CPUs, or no permission.
std::optional<int> CompletionVectorCore(const SystemPaths& paths, std::string_view device,
                                        int vector);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_COMPLETION_VECTOR_H_
