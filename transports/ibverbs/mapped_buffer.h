// Memory for messages on a real device: private anonymous pages, optionally huge ones or of one
// NUMA node, present from the start.
//
// The owner is the caller; memory regions over it must be gone before it is. Any thread.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_MAPPED_BUFFER_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_MAPPED_BUFFER_H_

#include <memory>

#include "core/base/error.h"
#include "transports/device.h"
#include "transports/ibverbs/system_files.h"

namespace verbscope {

// Page aligned, zeroed, of exactly options.bytes (the mapping behind it is rounded up to whole
// pages). 0 bytes give an empty buffer. kSetup when there is no memory, no reserved huge page, or
// no such node.
Expected<std::unique_ptr<Buffer>> MapBuffer(const BufferOptions& options, const SystemPaths& paths);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_MAPPED_BUFFER_H_
