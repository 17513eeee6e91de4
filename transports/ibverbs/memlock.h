// How much memory this process may lock, and whether that explains an ENOMEM of a verbs call.
//
// The kernel pins registered memory and most drivers pin their queues. What a process has pinned is
// compared with RLIMIT_MEMLOCK unless it has CAP_IPC_LOCK; above the limit the verb fails with
// ENOMEM, which users take for lack of RAM. Pure functions but for ReadMemlockState; any thread.
#ifndef VERBSCOPE_TRANSPORTS_IBVERBS_MEMLOCK_H_
#define VERBSCOPE_TRANSPORTS_IBVERBS_MEMLOCK_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "transports/common/system_files.h"

namespace verbscope {

struct MemlockState {
  std::optional<uint64_t> limit_bytes;   // RLIMIT_MEMLOCK now in force; nullopt: unlimited
  bool ipc_lock = false;                 // CAP_IPC_LOCK, which lifts the limit
  std::optional<uint64_t> pinned_bytes;  // pinned by this process already; nullopt: not known
};

// `status_text` is /proc/self/status, `uid_map_text` /proc/self/uid_map. A capability inside a user
// namespace (a rootless container) does not lift the limit, so it counts only when the map shows
// the host's own namespace. `limit` as from getrlimit, RLIM_INFINITY included.
MemlockState ParseMemlockState(std::string_view status_text, std::string_view uid_map_text,
                               uint64_t limit);

MemlockState ReadMemlockState(const SystemPaths& paths);

// Replaces cause and next step of an ENOMEM. `need_bytes` is what the call wants pinned, `what`
// names it ("the buffer"). When the limit cannot be the reason, it says so and keeps the rest.
void ExplainEnomem(const MemlockState& state, uint64_t need_bytes, std::string_view what,
                   Error& error);

}  // namespace verbscope

#endif  // VERBSCOPE_TRANSPORTS_IBVERBS_MEMLOCK_H_
